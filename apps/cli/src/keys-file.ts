import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { Failure } from './failure';

/** A list of keys of one tenant. The server checks the keys. */
export interface KeysFile {
  tenant: string;
  keys: { name: string; [field: string]: unknown }[];
}

/**
 * Reads a YAML or JSON file with `tenant` and `keys`. Without `tenant` in the file, `tenant` names it. Failure when it
 * cannot be read or has another form; a wrong key is named by its place.
 */
export function readKeysFile(path: string, tenant: string | undefined): KeysFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Failure(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`, 'file_unreadable');
  }
  let content: unknown;
  try {
    content = parse(text);
  } catch (error) {
    throw new Failure(`${path} is not YAML: ${(error as Error).message.split('\n')[0]}`, 'file_invalid');
  }
  const invalid = (problem: string) => new Failure(`${path}: ${problem}`, 'file_invalid');
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw invalid('it must have the fields tenant and keys.');
  const { tenant: named, keys, ...others } = content as Record<string, unknown>;
  const [other] = Object.keys(others);
  if (other !== undefined) throw invalid(`${other} is not a field. It has: tenant, keys.`);
  if (named !== undefined && typeof named !== 'string') throw invalid('tenant must be the id of a tenant.');
  if (named !== undefined && tenant !== undefined && named !== tenant)
    throw invalid(`it is of tenant ${named}, and --tenant names another one.`);
  const of = named ?? tenant;
  if (of === undefined) throw invalid('it names no tenant. Add the field, or give --tenant.');
  if (!Array.isArray(keys) || keys.length === 0) throw invalid('keys must be a list of keys, each with a name.');
  const seen = new Map<string, number>();
  for (const [index, key] of (keys as unknown[]).entries()) {
    const name = typeof key === 'object' && key !== null ? (key as { name?: unknown }).name : undefined;
    if (typeof name !== 'string') throw invalid(`keys.${index} must be a key with a name.`);
    const first = seen.get(name.trim());
    if (first !== undefined) throw invalid(`keys.${index} and keys.${first} have the same name, ${name}.`);
    seen.set(name.trim(), index);
  }
  return { tenant: of, keys: keys as KeysFile['keys'] };
}
