import type { KeyRow } from '@tollgate/contracts';
import { fileProblem } from '@tollgate/runtime/file-problem';
import { agrees } from '../command/agrees';
import type { Context } from '../command/context';
import { Failure, UsageFailure } from '../command/failure';
import { type KeysFile, readKeysFile } from './keys-file';
import { SecretsFile } from '../command/secrets-file';
import { counted, printable, table } from '../command/table';

/** The server takes bodies of 64 KiB and lists of 500 keys. */
const MAX_BODY_BYTES = 60 * 1024;
const MAX_KEYS = 500;
const TIMEOUT_MS = 30_000;

export interface ApplyOptions {
  tenant?: string;
  dryRun?: boolean;
  yes?: boolean;
  revokeOthers?: boolean;
  out?: string;
}

export interface Applied {
  created: (Omit<KeyRow, 'id' | 'last4'> & { id: string | null; key: string | null })[];
  updated: (KeyRow & { fields: (keyof KeyRow)[]; before: Partial<KeyRow> })[];
  revoked: { id: string; name: string }[];
  unchanged: number;
  /** Active keys that the file does not name, and that stay. A server of an earlier version does not say it. */
  others?: number;
  dryRun: boolean;
  inForce: boolean;
}

/**
 * Shows what would change, asks, and makes the keys of a tenant match a file. The secrets of new keys go to `out`, a
 * new file that only its owner may read, or to stdout.
 */
export async function applyKeys(context: Context, path: string, options: ApplyOptions): Promise<void> {
  const { output } = context;
  const { dryRun = false, yes = false, revokeOthers = false, out } = options;
  const file = readKeysFile(path, options.tenant);
  const parts = partsOf(file);
  if (revokeOthers && parts.length > 1)
    throw new UsageFailure(`--revoke-others needs a list that fits into one call: at most ${MAX_KEYS} keys, 60 KiB.`);
  const plan = await run(context, file, parts, { revokeOthers, dryRun: true });
  const changes = plan.created.length + plan.updated.length + plan.revoked.length;
  if (dryRun || changes === 0) {
    output.answer(plan, changes === 0 ? planText(plan) : `${planText(plan)}\nNothing was changed.`);
    return;
  }
  output.note(planText(plan));
  if (!yes && !(await agrees(`Make ${counted(changes, 'change')}?`, 'give --yes to apply without asking.')))
    throw new Failure('Nothing was changed.', 'not_confirmed');
  // Opened before anything is made: the secrets are shown only once.
  const target = out === undefined || plan.created.length === 0 ? null : SecretsFile.open(out);
  const made: Applied['created'] = [];
  const done = await run(context, file, parts, { revokeOthers, dryRun: false }, ({ created }) => {
    made.push(...created);
    if (target !== null) save(created, target, context);
  }).catch((error: unknown) => {
    // Earlier calls have created keys.
    if (target === null && made.length > 0) output.note(secrets(made));
    if (target !== null && made.length === 0) target.remove();
    throw plan.created.length > 0 ? withLostKeys(error) : error;
  });
  target?.close();
  if (!done.inForce) output.note('Not all changes are in force yet. Run the command again to check.');
  const { created, updated, revoked } = done;
  const sum = `Created ${created.length}, changed ${updated.length}, revoked ${revoked.length}.`;
  const place = `\nThe new keys are in ${out}: store them, they are not shown again.`;
  const shown = created.length === 0 ? '' : target !== null ? place : `\n\n${secrets(created)}`;
  const { others } = plan;
  const hidden = {
    ...done,
    ...(others !== undefined && { others }),
    created: created.map((key) => ({ ...key, ...(target !== null && { key: null }) })),
  };
  output.answer(hidden, sum + shown);
}

/** Throws Failure if the keys cannot be saved. They are on stderr then. */
function save(created: Applied['created'], target: SecretsFile, { output }: Context): void {
  if (created.length === 0) return;
  try {
    target.add(created.map(({ name, id, key }) => `${id} ${key} ${name}\n`).join(''));
  } catch (error) {
    output.note(secrets(created));
    throw new Failure(
      `${counted(created.length, 'new key')} could not be saved in ${printable(target.path)}: ${fileProblem(error)}. ` +
        'Store them from above. Not all changes may be made yet: repeat the command with another file.',
      'file_unwritable',
    );
  }
}

/** Without an answer, the last call may have created keys nevertheless. */
function withLostKeys(error: unknown): unknown {
  if (!(error instanceof Failure) || error.code !== 'unreachable') return error;
  const cure = 'Look with "tollgate key list", and give each of them a new secret with "tollgate key rotate".';
  return new Failure(`${error.message} Keys may have been made whose secrets were lost. ${cure}`, error.code);
}

function secrets(created: Applied['created']): string {
  const rows = created.map(({ name, id, key }) => [name, id ?? '', key ?? '']);
  return `${table(['NAME', 'ID', 'KEY'], rows, '')}\n\nStore these keys now: they are shown only this once.`;
}

/** Lists that fit into one call each. */
function partsOf({ keys }: KeysFile): KeysFile['keys'][] {
  const parts: KeysFile['keys'][] = [];
  let bytes = 0;
  for (const key of keys) {
    const length = Buffer.byteLength(JSON.stringify(key)) + 1;
    const last = parts.at(-1);
    if (last && last.length < MAX_KEYS && bytes + length <= MAX_BODY_BYTES) {
      last.push(key);
      bytes += length;
    } else {
      parts.push([key]);
      bytes = length;
    }
  }
  return parts;
}

async function run(
  { client }: Context,
  file: KeysFile,
  parts: KeysFile['keys'][],
  how: { revokeOthers: boolean; dryRun: boolean },
  each: (made: Applied) => void = () => undefined,
): Promise<Applied> {
  const whole: Applied = { created: [], updated: [], revoked: [], unchanged: 0, dryRun: how.dryRun, inForce: true };
  let before = 0;
  for (const keys of parts) {
    const path = `/tenants/${encodeURIComponent(file.tenant)}/keys/apply`;
    const { data } = await client
      .post<{ data: Applied }>(path, { keys, ...how }, TIMEOUT_MS)
      .catch((error: unknown) => wrongFile(error, file, before));
    before += keys.length;
    each(data);
    whole.created.push(...data.created);
    whole.updated.push(...data.updated);
    whole.revoked.push(...data.revoked);
    const named = data.updated.length + data.unchanged;
    // Those that only another part names are others of this one.
    if (data.others !== undefined) whole.others = whole.others === undefined ? data.others : whole.others - named;
    whole.unchanged += data.unchanged;
    whole.inForce &&= data.inForce;
  }
  return whole;
}

/** How the server names the place of what it refuses: `keys.3.tags: …`, or `"keys.3.tag" is not a field …`. */
const PLACE = /^keys\.(\d+)(?:\.(\w+))?: (.*)$/s;
const UNKNOWN_FIELD = /^"keys\.(\d+)\.(.+)" is not a field/s;
const FIELDS = 'name, profile, expiresAt, owner, tags, models';

/** What the server refuses is in the file, not on the command line. `before`: the keys of earlier calls. */
function wrongFile(error: unknown, file: KeysFile, before: number): never {
  if (!(error instanceof Failure)) throw error;
  const [, index, field, problem] = PLACE.exec(error.message) ?? [];
  const [, unknownAt, unknown] = UNKNOWN_FIELD.exec(error.message) ?? [];
  const place = (at: string, name?: string) => file.placeOf(before + Number(at), name);
  if (index !== undefined) throw new Failure(`${place(index, field)}: ${problem}`, error.code);
  if (unknownAt !== undefined)
    throw new Failure(`${place(unknownAt, unknown)}: it is not a field of a key. A key has: ${FIELDS}.`, error.code);
  throw error.isWrongUsage ? new Failure(error.message, error.code) : error;
}

/** Each change with what it changes, and the counts. */
function planText({ created, updated, revoked, unchanged, others = 0 }: Applied): string {
  const kept = others === 0 ? '' : ` Not in the file, and kept: ${others} (--revoke-others revokes them).`;
  if (created.length + updated.length + revoked.length === 0)
    return `Nothing to do: ${counted(unchanged, 'key')} as wanted.${kept}`;
  const rows = [
    ...created.map((key) => ['create', key.name, made(key)]),
    ...updated.map((key) => ['change', key.name, key.fields.map((field) => changed(key, field)).join('; ')]),
    ...revoked.map(({ name, id }) => ['revoke', name, id]),
  ];
  const counts = `To create: ${created.length}, to change: ${updated.length}, to revoke: ${revoked.length}`;
  return `${table(['', 'KEY', 'WHAT'], rows, '')}\n${counts}, as wanted: ${unchanged}.${kept}`;
}

function made({ profile, owner, tags, models, expiresAt }: Applied['created'][number]): string {
  const set = Object.entries({ owner, tags, models, expiresAt }).filter(([, value]) => shown(value) !== NONE);
  return [`profile ${profile}`, ...set.map(([field, value]) => `${field} ${shown(value)}`)].join('; ');
}

/** "owner: anna → bert" */
function changed(key: Applied['updated'][number], field: keyof KeyRow): string {
  // A server of an earlier version does not say it.
  const former = key.before && field in key.before ? shown(key.before[field], field) : 'unknown';
  return `${field}: ${former} → ${shown(key[field], field)}`;
}

const NONE = '-';

function shown(value: KeyRow[keyof KeyRow] | undefined, field?: string): string {
  if (value === null && field === 'models') return 'all';
  if (value === null && field === 'expiresAt') return 'never';
  if (Array.isArray(value)) return value.length === 0 ? NONE : value.join(',');
  return value ?? NONE;
}
