import { type Command, InvalidArgumentError } from 'commander';
import type { Context } from '../command/context';
import { UsageFailure } from '../command/failure';
import type { ApplyOptions } from './keys-apply';
import { group, leaf } from '../command/leaf';
import { DEFAULT_NAME, pick } from '../command/options';
import * as commands from './key-commands';

const DEFAULT_GRACE_HOURS = 24;
const MAX_GRACE_HOURS = 720;

interface Changes {
  name?: string;
  profile?: string;
  /** False: `--no-expiry`. */
  expiry?: false;
  expiresAt?: string;
  /** False: `--no-owner`. */
  owner?: string | false;
  tags?: string[];
  models?: string[];
  allModels?: true;
}

/** Inference keys of a tenant. */
export function addKeyCommands(program: Command, context: (options: object) => Context): void {
  const key = group(program, 'key', 'inference keys (sk-svc-…)', 'key create ten_01k… production', 'key list ten_01k…');
  leaf(
    key,
    'create <tenant> [name]',
    'create a key; it is shown only once',
    'key create ten_01k… production',
    'key create ten_01k… batch --profile default --expires-at 2027-01-01 --owner anna --tags batch,team:search',
  )
    .option('--profile <profile>', "key profile of the tenant's plan (default: the first one)")
    .option('--expires-at <time>', 'ISO 8601 date or timestamp, UTC (default: never)')
    .option('--owner <text>', 'who uses the key')
    .option('--tags <list>', 'comma-separated groups', listOf)
    .option('--models <list>', 'comma-separated ids of the only models that it may use', listOf)
    .action((id: string, name: string | undefined, options: commands.KeyOptions) =>
      commands.createKey(context(options), id, {
        name: name ?? DEFAULT_NAME,
        ...pick(options, 'profile', 'expiresAt', 'owner', 'tags', 'models'),
      }),
    );
  leaf(key, 'list <tenant>', 'list the keys of a tenant, newest first', 'key list ten_01k…').action(
    (id: string, options: object) => commands.listKeys(context(options), id),
  );
  leaf(
    key,
    'update <tenant> <key>',
    'change fields of a key; it takes effect within a second',
    'key update ten_01k… key_01k… --profile batch',
    'key update ten_01k… key_01k… --no-owner --tags "" --no-expiry',
  )
    .option('--name <name>', 'new name')
    .option('--profile <profile>', "key profile of the tenant's plan")
    .option('--expires-at <time>', 'ISO 8601 date or timestamp in the future, UTC')
    .option('--no-expiry', 'remove the expiry')
    .option('--owner <text>', 'who uses the key')
    .option('--no-owner', 'remove the owner')
    .option('--tags <list>', 'comma-separated groups, in place of the former ones', listOf)
    .option('--models <list>', 'comma-separated ids of the only models that it may use', listOf)
    .option('--all-models', 'let it use all models of its profile')
    .action((id: string, keyId: string, options: Changes) =>
      commands.updateKey(context(options), id, keyId, changesOf(options)),
    );
  addRotation(program, key, context);
  leaf(
    key,
    'revoke <tenant> <key>',
    'revoke a key; it takes effect within a second',
    'key revoke ten_01k… key_01k…',
  ).action((id: string, keyId: string, options: object) => commands.revoke(context(options), 'key', id, keyId));
}

/** The next secret of a key, and lists of keys. */
function addRotation(program: Command, key: Command, context: (options: object) => Context): void {
  leaf(
    key,
    'rotate <tenant> <key>',
    'give a key its next secret; former ones are accepted for a grace time',
    'key rotate ten_01k… key_01k…',
    'key rotate ten_01k… key_01k… --grace 0',
  )
    .option('--grace <hours>', 'hours for which former secrets are accepted, 0 to 720', hours, DEFAULT_GRACE_HOURS)
    .action((id: string, keyId: string, options: { grace: number }) =>
      commands.rotateKey(context(options), id, keyId, Math.round(options.grace * 3_600)),
    );
  const keys = group(program, 'keys', 'all keys of a tenant, from a file', 'keys apply keys.yaml');
  leaf(
    keys,
    'apply <file>',
    'set the keys of a tenant from a YAML file: shows the changes, asks, and applies all or none',
    'keys apply keys.yaml --dry-run',
    'keys apply keys.yaml --yes --out new-keys.txt',
  )
    .option('--tenant <tenant>', 'the tenant, if the file does not name it')
    .option('--dry-run', 'only show what would change')
    .option('--yes', 'do not ask')
    .option('--revoke-others', 'also revoke active keys that the file does not name')
    .option('--out <file>', 'write the new keys to this file, which must not exist yet, instead of the terminal')
    .action(async (file: string, options: ApplyOptions) => {
      // Loaded for this command alone: the parser of YAML takes a tenth of a second.
      const { applyKeys } = await import('./keys-apply.js');
      await applyKeys(context(options), file, options);
    });
}

function hours(text: string): number {
  const value = Number(text);
  if (!/^\d{1,3}(\.\d{1,2})?$/.test(text) || value > MAX_GRACE_HOURS)
    throw new InvalidArgumentError(`It must be a number from 0 to ${MAX_GRACE_HOURS}.`);
  return value;
}

const listOf = (text: string): string[] => (text === '' ? [] : text.split(',').map((word) => word.trim()));

/** The body of the change. Commander sets `expiry` to true where `--no-expiry` is absent. */
function changesOf({ expiry, owner, ...options }: Changes): Record<string, unknown> {
  if (expiry === false && options.expiresAt !== undefined)
    throw new UsageFailure('Give only one of --expires-at and --no-expiry.');
  if (options.models !== undefined && options.allModels)
    throw new UsageFailure('Give only one of --models and --all-models.');
  const changes = {
    ...pick(options, 'name', 'profile', 'expiresAt', 'tags', 'models'),
    ...(options.allModels && { models: null }),
    ...(expiry === false && { expiresAt: null }),
    ...(owner === false ? { owner: null } : typeof owner === 'string' && { owner }),
  };
  if (Object.keys(changes).length === 0) throw new UsageFailure('Give at least one field to change: see --help.');
  return changes;
}
