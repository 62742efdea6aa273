import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HASH_CHARS = 8;

/** A Redis Function library: its name, and its whole source with the header that Redis requires. */
export interface FunctionLibrary {
  name: string;
  source: string;
}

/**
 * The library of all `.lua` files of a folder, in the order of their names. `family` names the seam and the version of
 * its data (`tollgate_admission_v1`). The hash of the source follows it and distinguishes releases: during a rollout
 * each process calls its own functions on the same data, and no release replaces the functions of another. In the
 * source, LIBRARY is the name: functions are registered as `LIBRARY .. '_admit'`.
 */
export function readFunctionLibrary(family: string, directory: string): FunctionLibrary {
  const files = readdirSync(directory)
    .filter((file) => file.endsWith('.lua'))
    .sort();
  return functionLibrary(family, files.map((file) => readFileSync(join(directory, file), 'utf8')).join('\n'));
}

export function functionLibrary(family: string, code: string): FunctionLibrary {
  const name = `${family}_${hash('sha256', code, 'hex').slice(0, HASH_CHARS)}`;
  return { name, source: `#!lua name=${name}\nlocal LIBRARY = '${name}'\n${code}` };
}
