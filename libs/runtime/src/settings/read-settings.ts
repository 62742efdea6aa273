import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validateSync } from 'class-validator';
import { readFileSync } from 'node:fs';
import { fileProblem } from '../file-problem';
import { StartError } from '../process/start-error';
import { secretsOf } from './decorators';

/** Invalid settings. `message` has a line for each, with its name and the cure, and never a secret. */
export class SettingsError extends StartError {}

/** A class whose properties are named like environment variables. Decorators check and describe each of them. */
export interface SettingsClass<T extends object = object> {
  new (): T;
}

/** Checks of several settings together. */
export interface ChecksItself {
  /** Returns a line for each problem. Called when each setting by itself is valid. */
  problems(): string[];
}

/** The settings of several classes in one object. */
export type Together<C extends readonly SettingsClass[]> = C extends readonly [
  SettingsClass<infer First>,
  ...infer Rest extends readonly SettingsClass[],
]
  ? First & Together<Rest>
  : object;

/**
 * Reads and checks the settings of all these classes together. An empty value counts as unset. Throws SettingsError
 * with a line for every problem.
 */
export function readSettings<const C extends readonly SettingsClass[]>(
  env: NodeJS.ProcessEnv,
  classes: C,
): Together<C> {
  const problems: string[] = [];
  const settings = classes.map((type) => {
    const given = gatherValues(env, type, problems);
    const read = plainToInstance(type, given, { exposeDefaultValues: true }) as object & Partial<ChecksItself>;
    const wrong = validateSync(read, { stopAtFirstError: true }).flatMap((error) =>
      Object.values(error.constraints ?? {}),
    );
    problems.push(...wrong, ...(wrong.length === 0 ? (read.problems?.() ?? []) : []));
    return read;
  });
  if (problems.length > 0) throw new SettingsError([...new Set(problems)].join('\n'));
  return Object.assign({}, ...settings) as Together<C>;
}

function gatherValues(env: NodeJS.ProcessEnv, type: SettingsClass, problems: string[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of namesOf(type)) {
    const value = env[name] || (secretsOf(type).has(name) ? readSecret(env, name, problems) : undefined);
    if (value) values[name] = value;
  }
  return values;
}

/** Every property with a rule. Other properties are not settings. */
export function namesOf(type: SettingsClass): Set<string> {
  const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  return new Set(rules.map(({ propertyName }) => propertyName));
}

function readSecret(env: NodeJS.ProcessEnv, name: string, problems: string[]): string | undefined {
  const file = env[`${name}_FILE`];
  if (!file) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    problems.push(`${name}_FILE: ${file} cannot be read (${fileProblem(error)})`);
    return undefined;
  }
}
