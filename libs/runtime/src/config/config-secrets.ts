import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { fileProblem } from '../file-problem';

/** A field's place in the configuration. */
export type Path = (string | number)[];
export interface Problem {
  path: Path;
  message: string;
}

const SETTING = 'TOLLGATE_CONFIG_SECRETS_FILE';
const VARIABLE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;
const FILE = 'file:';

/**
 * The file with the values that the configuration names as `${NAME}`, if there is one: lines `NAME=value`. It is read
 * again whenever the configuration is.
 */
export const secretsFileOf = (env: NodeJS.ProcessEnv | null): string | undefined => env?.[SETTING] || undefined;

/** Callbacks of a reader of a configuration, about its secrets. */
export interface SecretListeners {
  /** Secrets that are not here are no problem: they are omitted, and their references reported. */
  onMissing?: ((reference: string) => void) | undefined;
  /** Called before a file is read that a reference names, with its absolute path. */
  onFile?: (path: string) => void;
}

/**
 * Inserts the secrets, or omits them (`env` null). Refuses a secret that is written out in the file, and a certificate
 * without its key.
 */
export function resolveSecrets(
  raw: Record<string, unknown>,
  directory: string,
  env: NodeJS.ProcessEnv | null,
  problems: Problem[],
  { onMissing, onFile }: SecretListeners,
): void {
  const file = secretsFileOf(env);
  const named = file === undefined ? {} : readSecretsFile(file, problems);
  const resolvedIn = new WeakMap<object, Set<string>>();
  const backends = backendsIn(raw);
  // Before any secret is omitted.
  for (const { backend, at } of backends) {
    const { certificate, key } = asObject(backend['tls']);
    if (isGiven(certificate) !== isGiven(key))
      problems.push({ path: [...at, 'tls'], message: 'must have "certificate" and "key" together' });
  }
  for (const { backend, at } of backends) {
    resolveIn(backend, ['apiKey'], at);
    resolveIn(asObject(backend['tls']), ['ca', 'certificate', 'key'], [...at, 'tls']);
    const headers = asObject(backend['headers']);
    resolveIn(headers, Object.keys(headers), [...at, 'headers']);
    if (env === null) delete backend['headers'];
  }

  function resolveIn(holder: Record<string, unknown>, fields: readonly string[], at: Path): void {
    // An alias of YAML is the object of its anchor: a secret may be there already.
    const resolved = resolvedIn.get(holder) ?? new Set();
    resolvedIn.set(holder, resolved);
    for (const field of fields) {
      const value = holder[field];
      if (!isGiven(value) || resolved.has(field)) continue;
      const path: Path = [...at, field];
      if (!isReference(value)) {
        const message = 'must be a reference, "${NAME}" or "file:path": a secret is never written into this file';
        problems.push({ path, message });
        continue;
      }
      if (env === null) {
        delete holder[field];
        continue;
      }
      const found = secretOf(value, env);
      if ('secret' in found) {
        holder[field] = found.secret;
        resolved.add(field);
      } else if (onMissing) {
        delete holder[field];
        onMissing(value);
      } else problems.push({ path, message: found.missing });
    }
  }

  function secretOf(reference: string, variables: NodeJS.ProcessEnv): { secret: string } | { missing: string } {
    const variable = VARIABLE.exec(reference)?.[1];
    if (variable !== undefined) {
      const secret = variables[variable]?.trim() || named[variable]?.trim();
      return secret ? { secret } : { missing: notSet(variable, file) };
    }
    const secretFile = resolve(directory, reference.slice(FILE.length));
    onFile?.(secretFile);
    try {
      return { secret: readFileSync(secretFile, 'utf8').trim() };
    } catch (error) {
      return { missing: `the file ${cannotBeRead(error)}` };
    }
  }
}

const isReference = (value: unknown): value is string =>
  typeof value === 'string' && (VARIABLE.test(value) || value.startsWith(FILE));

/** That reading a file failed, why, and the cure if only one is possible. */
export function cannotBeRead(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  const cure = 'give the user of this process the right to read it, and to enter the folders above it';
  return `cannot be read (${fileProblem(error)})${code === 'EACCES' ? `: ${cure}` : ''}`;
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

function backendsIn(raw: Record<string, unknown>): { backend: Record<string, unknown>; at: Path }[] {
  return [...asArray(raw['models']).entries()].flatMap(([m, model]) =>
    [...asArray(model['backends']).entries()].map(([b, backend]) => ({ backend, at: ['models', m, 'backends', b] })),
  );
}

function readSecretsFile(file: string, problems: Problem[]): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    problems.push({ path: [], message: `${SETTING}: ${file} ${cannotBeRead(error)}` });
    return {};
  }
}

const notSet = (variable: string, file: string | undefined): string =>
  file === undefined
    ? `the environment variable ${variable} is not set`
    : `${variable} is set neither in the environment nor in ${file} (${SETTING})`;

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function asArray(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value)
    ? value.map((item) => (typeof item === 'object' && item !== null ? (item as Record<string, unknown>) : {}))
    : [];
}
