import { readFileSync } from 'node:fs';
import { isNode, LineCounter, parseDocument, type Document } from 'yaml';
import { fileProblem } from '@tollgate/runtime/file-problem';
import { recursiveAliases } from '@tollgate/runtime/recursive-aliases';
import { Failure } from '../command/failure';
import { printable } from '../command/table';

/** A list of keys of one tenant. The server checks the keys. */
export interface KeysFile {
  tenant: string;
  keys: { name: string; [field: string]: unknown }[];
  /** `keys.yaml:4: key gpu-01, field tags`, of the key at this place in `keys`. */
  placeOf(index: number, field?: string): string;
}

/**
 * Reads a YAML or JSON file with `tenant` and `keys`. Without `tenant` in the file, `tenant` names it. Failure when it
 * cannot be read or has another form; a wrong key is named by its line.
 */
export function readKeysFile(path: string, tenant: string | undefined): KeysFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Failure(`${path} cannot be read: ${fileProblem(error)}.`, 'file_unreadable');
  }
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter });
  const [problem] = document.errors;
  if (problem) throw new Failure(`${path} is not YAML: ${problem.message.split('\n')[0]}`, 'file_invalid');
  const [alias] = recursiveAliases(document);
  if (alias) throw new Failure(`${path}:${lineCounter.linePos(alias.offset).line}: ${alias.message}.`, 'file_invalid');
  const content = contentOf(document, path);
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
  const lineOf = (index: number, field?: string): number => {
    const at = ['keys', index, ...(field !== undefined && document.hasIn(['keys', index, field]) ? [field] : [])];
    const node = document.getIn(at, true);
    const [offset = 0] = (isNode(node) && node.range) || [];
    return lineCounter.linePos(offset).line;
  };
  const seen = new Map<string, number>();
  for (const [index, key] of (keys as unknown[]).entries()) {
    const name = typeof key === 'object' && key !== null ? (key as { name?: unknown }).name : undefined;
    const wrong = (problem: string) => new Failure(`${path}:${lineOf(index)}: ${problem}`, 'file_invalid');
    if (typeof name !== 'string') throw wrong(`keys.${index} must be a key with a name.`);
    const first = seen.get(name.trim());
    if (first !== undefined) throw wrong(`the key in line ${lineOf(first)} has the same name, ${printable(name)}.`);
    seen.set(name.trim(), index);
  }
  const list = keys as KeysFile['keys'];
  const placeOf = (index: number, field?: string) =>
    `${path}:${lineOf(index, field)}: key ${printable(list[index]!.name)}` +
    (field === undefined ? '' : `, field ${printable(field)}`);
  return { tenant: of, keys: list, placeOf };
}

/** Throws Failure for an alias without its anchor, and for aliases that would expand to a huge document. */
function contentOf(document: Document, path: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new Failure(`${path} is not YAML: ${(error as Error).message}`, 'file_invalid');
  }
}
