import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  futimesSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { SERVICES, type Service } from '@tollgate/contracts';
import { makeDirectory } from '@tollgate/runtime';
import {
  BadKeysError,
  KEY_BYTES,
  MAX_KEYS_PER_PAIR,
  nameOf,
  pairsOf,
  readKeys,
  writeKeys,
  type KeyLine,
} from './message-keys';

const ID_BYTES = 4;
const DIRECTORY_MODE = 0o700;
const PRIVATE_MODE = 0o600;
const OWNER_WRITES = 0o200;

/** The steps of a rotation: every service accepts the new key, then signs with it, then accepts no other. */
export type RotationStep = 'add' | 'promote' | 'remove';

export interface KeyFiles {
  /** The files that were written. */
  files: string[];
  pairs: number;
}

export const keysFileOf = (directory: string, service: Service): string => join(directory, `${service}-message-keys`);

/**
 * Creates missing keys in the files of a directory, one file for each service. Existing keys stay, so it is safe to
 * repeat. `mode`: the permissions of new files; by default no other user may read them. BadKeysError: the files do not
 * match each other.
 */
export function createMessageKeys(directory: string, mode = PRIVATE_MODE): KeyFiles {
  makeDirectory(directory, DIRECTORY_MODE);
  const keys = readAll(directory);
  const missing = pairsOfAll().filter((pair) => !keys.has(nameOf(pair)));
  for (const pair of missing) keys.set(nameOf(pair), [{ ...pair, ...newKey() }]);
  return { files: writeAll(directory, keys, mode), pairs: missing.length };
}

/**
 * One step of a rotation, for all pairs. BadKeysError: the files do not match each other, or the step is out of order.
 */
export function rotateMessageKeys(directory: string, step: RotationStep): KeyFiles {
  const keys = readAll(directory);
  if (keys.size === 0)
    throw new BadKeysError([
      `there are no message keys in ${directory}: make them with "tollgate message-keys create"`,
    ]);
  const each: Record<RotationStep, (of: KeyLine[]) => KeyLine[]> = {
    add: (of) => [...of, { from: of[0]!.from, to: of[0]!.to, ...newKey() }],
    promote: ([first, second]) => [second!, first!],
    remove: ([first]) => [first!],
  };
  const expected = step === 'add' ? MAX_KEYS_PER_PAIR - 1 : MAX_KEYS_PER_PAIR;
  if ([...keys.values()].some((of) => of.length !== expected))
    throw new BadKeysError([
      step === 'add'
        ? 'there are two keys of a pair already: continue with "promote" or "remove"'
        : 'there is only one key of a pair: start with "add"',
    ]);
  for (const [name, of] of keys) keys.set(name, each[step](of));
  return { files: writeAll(directory, keys, PRIVATE_MODE), pairs: keys.size };
}

const newKey = () => ({ id: randomBytes(ID_BYTES).toString('hex'), secret: randomBytes(KEY_BYTES).toString('hex') });

const pairsOfAll = () => [...new Map(SERVICES.flatMap(pairsOf).map((pair) => [nameOf(pair), pair])).values()];

/** The keys by pair, as both files have them. A file that lacks a pair, such as a new one, gets it from the other. */
function readAll(directory: string): Map<string, KeyLine[]> {
  const keys = new Map<string, KeyLine[]>();
  for (const service of SERVICES) {
    const file = keysFileOf(directory, service);
    if (!existsSync(file)) continue;
    const own = new Map<string, KeyLine[]>();
    for (const line of readNamed(file)) own.set(nameOf(line), [...(own.get(nameOf(line)) ?? []), line]);
    for (const [name, lines] of own) {
      const known = keys.get(name);
      if (known && JSON.stringify(known) !== JSON.stringify(lines))
        throw new BadKeysError([
          `${file}: its keys "${name}" differ from those of the other service: restore both files`,
        ]);
      keys.set(name, lines);
    }
  }
  return keys;
}

function readNamed(file: string): KeyLine[] {
  try {
    return readKeys(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof BadKeysError) throw new BadKeysError(error.problems.map((problem) => `${file}: ${problem}`));
    throw error;
  }
}

function writeAll(directory: string, keys: ReadonlyMap<string, KeyLine[]>, mode: number): string[] {
  return SERVICES.map((service) => {
    const lines = pairsOf(service).flatMap((pair) => keys.get(nameOf(pair)) ?? []);
    return { file: keysFileOf(directory, service), text: writeKeys(service, lines) };
  })
    .filter(({ file, text }) => writeInPlace(file, text, mode))
    .map(({ file }) => file);
}

/**
 * Overwrites in place, so a process that has the file mounted reads the new content. False: the content is the same.
 */
function writeInPlace(file: string, text: string, mode: number): boolean {
  if (!existsSync(file)) {
    writeFileSync(file, text, { mode: PRIVATE_MODE, flush: true });
    chmodSync(file, mode);
    return true;
  }
  const before = readFileSync(file, 'utf8');
  if (before === text) return false;
  const ownMode = statSync(file).mode & 0o777;
  if (!(ownMode & OWNER_WRITES)) chmodSync(file, ownMode | OWNER_WRITES);
  const opened = openSync(file, 'r+');
  try {
    overwrite(opened, text, before.length);
  } catch (error) {
    // Its blocks are allocated, so the write succeeds on a full disk too.
    overwrite(opened, before, text.length);
    throw error;
  } finally {
    closeSync(opened);
    if (!(ownMode & OWNER_WRITES)) chmodSync(file, ownMode);
  }
  return true;
}

/**
 * Services read the file meanwhile, and one may be starting. So the file keeps its permissions and is never empty or
 * incomplete, as it would be with `writeFileSync`. One write replaces the whole content, padded with empty lines, which
 * mean nothing. Then the file is truncated.
 */
function overwrite(opened: number, text: string, lengthBefore: number): void {
  const bytes = Buffer.from(text.padEnd(lengthBefore, '\n'));
  const written = writeSync(opened, bytes, 0, bytes.length, 0);
  if (written < bytes.length) throw new Error(`only ${written} of ${bytes.length} bytes could be written`);
  ftruncateSync(opened, Buffer.byteLength(text));
  // After the content, because the kernel sets the time before it. A reader in between reads the file again.
  const now = new Date();
  futimesSync(opened, now, now);
  fsyncSync(opened);
}
