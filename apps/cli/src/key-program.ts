import type { Command } from 'commander';
import * as commands from './commands';
import { UsageFailure } from './failure';
import { group, leaf } from './leaf';
import { DEFAULT_NAME, pick } from './options';

interface Changes {
  name?: string;
  profile?: string;
  /** False: `--no-expiry`. */
  expiry?: false;
  expiresAt?: string;
  /** False: `--no-owner`. */
  owner?: string | false;
  tags?: string[];
}

/** Inference keys of a tenant. */
export function addKeyCommands(program: Command, context: (options: object) => commands.Context): void {
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
    .action((id: string, name: string | undefined, options: commands.KeyOptions) =>
      commands.createKey(context(options), id, {
        name: name ?? DEFAULT_NAME,
        ...pick(options, 'profile', 'expiresAt', 'owner', 'tags'),
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
    .option('--no-expiry', 'let it never expire')
    .option('--owner <text>', 'who uses the key')
    .option('--no-owner', 'name nobody')
    .option('--tags <list>', 'comma-separated groups, in place of the former ones', listOf)
    .action((id: string, keyId: string, options: Changes) =>
      commands.updateKey(context(options), id, keyId, changesOf(options)),
    );
  leaf(
    key,
    'revoke <tenant> <key>',
    'revoke a key; it takes effect within a second',
    'key revoke ten_01k… key_01k…',
  ).action((id: string, keyId: string, options: object) => commands.revoke(context(options), 'key', id, keyId));
}

const listOf = (text: string): string[] => (text === '' ? [] : text.split(',').map((word) => word.trim()));

/** The body of the change. Commander sets `expiry` to true where `--no-expiry` is absent. */
function changesOf({ expiry, owner, ...options }: Changes): Record<string, unknown> {
  if (expiry === false && options.expiresAt !== undefined)
    throw new UsageFailure('Give only one of --expires-at and --no-expiry.');
  const changes = {
    ...pick(options, 'name', 'profile', 'expiresAt', 'tags'),
    ...(expiry === false && { expiresAt: null }),
    ...(owner === false ? { owner: null } : typeof owner === 'string' && { owner }),
  };
  if (Object.keys(changes).length === 0) throw new UsageFailure('Give at least one field to change: see --help.');
  return changes;
}
