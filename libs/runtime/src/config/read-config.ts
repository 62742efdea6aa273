import { DIALECT_BOUNDS, validatePassedThrough } from '@tollgate/contracts';
import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml';
import { problemsOfTls } from './check-tls';
import type { RuleContext } from './config-rules';
import { cannotBeRead, resolveSecrets, type Path, type SecretListeners } from './config-secrets';
import { recursiveAliases } from './recursive-aliases';
import { type ModelConfig, TollgateConfig } from './tollgate-config';

export interface ConfigProblem {
  /** The position, as `models[0].price.input`. Empty for the whole file. */
  path: string;
  message: string;
  /** The line in the file from 1, if known. */
  line?: number;
}

/** The file cannot be used. `problems` lists every wrong field; `message` has a line for each. */
export class ConfigError extends Error {
  constructor(
    readonly file: string,
    readonly problems: ConfigProblem[],
    /** The file is not there, or may not be read. */
    readonly unreadable = false,
  ) {
    super(
      problems
        .map(({ path, message, line }) => `${file}${line ? `:${line}` : ''}: ${path ? `${path}: ` : ''}${message}`)
        .join('\n'),
    );
    this.name = 'ConfigError';
  }
}

const MAX_ALIASES = 100;
/** The fields of a model for parts that only some dialects take. */
const MEDIA_BY_DIALECT = [
  ['maxTokensPerVideo', 'video'],
  ['maxTokensPerFile', 'file'],
] as const;

/**
 * Reads and checks `tollgate.yaml`, and resolves secrets (`apiKey`): `${NAME}` from `env` or from the file that
 * TOLLGATE_CONFIG_SECRETS_FILE names there, `file:path` relative to the configuration file. `env` null: the caller
 * needs no secrets, and they are omitted. Throws ConfigError with every problem found, and never with the value of a
 * secret.
 */
export function readConfigFile(
  file: string,
  env: NodeJS.ProcessEnv | null,
  listeners: SecretListeners = {},
): TollgateConfig {
  const lines = new LineCounter();
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(file, [{ path: '', message: cannotBeRead(error) }], true);
  }
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    throw new ConfigError(
      file,
      document.errors.map((error) => ({
        path: '',
        message: error.message.split('\n')[0]!,
        line: lines.linePos(error.pos[0]).line,
      })),
    );
  }
  const recursive = recursiveAliases(document);
  if (recursive.length > 0) {
    throw new ConfigError(
      file,
      recursive.map(({ message, offset }) => ({ path: '', message, line: lines.linePos(offset).line })),
    );
  }
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    // An alias without its anchor, or aliases that would expand to a huge document.
    throw new ConfigError(file, [{ path: '', message: (error as Error).message }]);
  }
  const problems: { path: Path; message: string }[] = [];
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new ConfigError(file, [{ path: '', message: 'must be a mapping with "models" and "plans"' }]);
  }
  resolveSecrets(raw as Record<string, unknown>, dirname(resolve(file)), env, problems, listeners);
  const config = plainToInstance(TollgateConfig, raw, { exposeDefaultValues: true });
  const errors = validateSync(config, {
    whitelist: true,
    forbidNonWhitelisted: true,
    forbidUnknownValues: true,
  });
  const secrets = new Set(problems.map(({ path }) => formatPath(path)));
  const wrong = errors.flatMap((error) => flatten(error, [])).filter(({ path }) => !secrets.has(formatPath(path)));
  problems.push(...wrong);
  if (problems.length === 0) problems.push(...crossChecks(config));
  if (problems.length > 0) {
    throw new ConfigError(
      file,
      problems.map(({ path, message }) => {
        const line = lineOf(document, path, lines);
        return { path: formatPath(path), message, ...(line === undefined ? {} : { line }) };
      }),
    );
  }
  return config;
}

function crossChecks(config: TollgateConfig): { path: Path; message: string }[] {
  const problems: { path: Path; message: string }[] = [];
  const known = new Set(config.models.map((model) => model.id));
  const named = new Map(config.models.map(({ id }) => [id, id]));
  for (const [m, model] of config.models.entries()) {
    for (const [a, alias] of model.aliases.entries()) {
      const owner = named.get(alias);
      if (owner !== undefined)
        problems.push({ path: ['models', m, 'aliases', a], message: `"${alias}" is already a name of "${owner}"` });
      named.set(alias, model.id);
    }
    if (model.kind === 'chat' && (model.maxOutputTokens ?? 0) > model.contextTokens) {
      problems.push({ path: ['models', m, 'maxOutputTokens'], message: 'must not be more than contextTokens' });
    }
    for (const [b, { url, tls, dialect = 'any' }] of model.backends.entries()) {
      for (const [field, kind] of MEDIA_BY_DIALECT) {
        if (model[field] === undefined || DIALECT_BOUNDS[dialect][kind]) continue;
        problems.push({ path: ['models', m, field], message: `backends[${b}] is of a dialect without it: ${dialect}` });
      }
      const path: Path = ['models', m, 'backends', b, 'tls'];
      if (tls && !url.startsWith('https:')) problems.push({ path, message: 'is only for a URL with https:' });
      for (const { field, message } of tls ? problemsOfTls(tls) : [])
        problems.push({ path: field ? [...path, field] : path, message });
    }
    for (const [f, id] of model.fallback.entries()) {
      const message = validateFallback(model, id, config.models);
      if (message !== null) problems.push({ path: ['models', m, 'fallback', f], message });
    }
    for (const [f, field] of (model.passthrough ?? []).entries()) {
      const message = validatePassedThrough(field);
      if (message !== null) problems.push({ path: ['models', m, 'passthrough', f], message });
    }
  }
  for (const [p, plan] of config.plans.entries()) {
    for (const [q, profile] of plan.profiles.entries()) {
      for (const [i, id] of profile.models.entries()) {
        if (id !== '*' && !known.has(id))
          problems.push({ path: ['plans', p, 'profiles', q, 'models', i], message: `there is no model "${id}"` });
      }
    }
  }
  return problems;
}

/** A hold covers the prompt of each fallback only if all count it alike. Vectors of different models do not mix. */
const COUNTED_ALIKE = [
  'tokenizer',
  'templateTokensPerMessage',
  'templateTokens',
  'maxTokensPerImage',
  'maxTokensPerAudio',
  'maxTokensPerVideo',
  'maxTokensPerFile',
] as const;

function validateFallback(model: ModelConfig, id: string, models: readonly ModelConfig[]): string | null {
  const other = models.find((one) => one.id === id);
  if (!other) return `there is no model "${id}"`;
  if (other === model) return 'must be another model';
  if (model.kind !== 'chat' || other.kind !== 'chat') return 'is only for chat models';
  const differing = COUNTED_ALIKE.find((field) => other[field] !== model[field]);
  return differing === undefined ? null : `"${id}" must have the same ${differing}`;
}

function flatten(error: ValidationError, above: Path): { path: Path; message: string }[] {
  const path = [...above, /^\d+$/.test(error.property) ? Number(error.property) : error.property];
  const contexts = error.contexts as Record<string, RuleContext> | undefined;
  const own = Object.entries(error.constraints ?? {})
    // A rule of ours refuses the same value, and says what it must be.
    .filter(([rule]) => rule !== 'nestedValidation')
    .map(([rule, message]) => ({
      path: [...path, ...(contexts?.[rule]?.placeIn(error.value) ?? [])],
      message: rule === 'whitelistValidation' ? 'there is no such field' : message,
    }));
  return [...own, ...(error.children ?? []).flatMap((child) => flatten(child, path))];
}

function lineOf(document: Document, path: Path, lines: LineCounter): number | undefined {
  // The deepest existing node: a missing field is reported at its parent, an unknown one at its key.
  for (let depth = path.length; depth > 0; depth--) {
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    const name = path[depth - 1];
    if (isMap(parent)) {
      const key = parent.items.find((pair) => isScalar(pair.key) && pair.key.value === name)?.key;
      if (isScalar(key) && key.range) return lines.linePos(key.range[0]).line;
    } else if (isSeq(parent)) {
      const item = parent.items[Number(name)] as { range?: [number, number, number] } | undefined;
      if (item?.range) return lines.linePos(item.range[0]).line;
    }
  }
  return undefined;
}

function formatPath(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text ? `${text}.${part}` : part),
    '',
  );
}
