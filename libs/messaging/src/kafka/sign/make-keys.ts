import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICES, type Service } from '@tollgate/contracts';
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

/** A rotation, in its order: the new key is believed everywhere, then signs, then is the only one. */
export const ROTATION_STEPS = ['add', 'promote', 'remove'] as const;
export type RotationStep = (typeof ROTATION_STEPS)[number];

export interface KeyFiles {
  /** Those that were written. */
  files: string[];
  pairs: number;
}

export const keysFileOf = (directory: string, service: Service): string => join(directory, `${service}-message-keys`);

/**
 * Makes the keys that are missing in the files of a directory, one file for each service; what is there stays, so it is safe to repeat. `mode`: of new files; by default nobody else may read them.
 * BadKeysError: the files do not fit each other.
 */
export function createMessageKeys(directory: string, mode = PRIVATE_MODE): KeyFiles {
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const keys = readAll(directory);
  const missing = pairsOfAll().filter((pair) => !keys.has(nameOf(pair)));
  for (const pair of missing) keys.set(nameOf(pair), [{ ...pair, ...newKey() }]);
  return { files: writeAll(directory, keys, mode), pairs: missing.length };
}

/** One step of a rotation, for all pairs. BadKeysError: the files do not fit each other, or the step is not the next one. */
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
        ? 'there are two keys of a pair already: go on with "promote" or "remove"'
        : 'there is only one key of a pair: begin with "add"',
    ]);
  for (const [name, of] of keys) keys.set(name, each[step](of));
  return { files: writeAll(directory, keys, PRIVATE_MODE), pairs: keys.size };
}

const newKey = () => ({ id: randomBytes(ID_BYTES).toString('hex'), secret: randomBytes(KEY_BYTES).toString('hex') });

const pairsOfAll = () => [...new Map(SERVICES.flatMap(pairsOf).map((pair) => [nameOf(pair), pair])).values()];

/** By pair, as the files of both have them. One that lacks a pair, as after a pair is new, gets it from the other. */
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
          `${file}: its keys "${name}" are not those of the other service: restore both files as they were`,
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

/** In place: who has the file mounted reads the new content. While that is done a copy lies beside it, lest a crash lose the keys. False: it says that already. */
function writeInPlace(file: string, text: string, mode: number): boolean {
  if (!existsSync(file)) {
    writeFileSync(file, text, { mode: PRIVATE_MODE, flush: true });
    chmodSync(file, mode);
    return true;
  }
  if (readFileSync(file, 'utf8') === text) return false;
  const copy = `${file}.new`;
  const ownMode = statSync(file).mode & 0o777;
  writeFileSync(copy, text, { mode: PRIVATE_MODE, flush: true });
  chmodSync(file, PRIVATE_MODE);
  writeFileSync(file, text, { flush: true });
  chmodSync(file, ownMode);
  rmSync(copy);
  return true;
}
