import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml';
import type { RuleContext } from './config-rules';
import { cannotBeRead, resolveSecrets, type Path, type Problem, type SecretListeners } from './config-secrets';
import { crossChecks } from './cross-checks';
import { recursiveAliases } from './recursive-aliases';
import { TollgateConfig } from './tollgate-config';

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
  const { raw, document, lines } = parseFile(file);
  const problems: Problem[] = [];
  resolveSecrets(raw, dirname(resolve(file)), env, problems, listeners);
  const config = plainToInstance(TollgateConfig, raw, { exposeDefaultValues: true });
  const errors = validateSync(config, { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: true });
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

interface ParsedFile {
  raw: Record<string, unknown>;
  document: Document;
  lines: LineCounter;
}

/** Throws ConfigError if the file cannot be read, or is not a mapping in YAML. */
function parseFile(file: string): ParsedFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(file, [{ path: '', message: cannotBeRead(error) }], true);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const errors = document.errors.map(({ message, pos }) => ({ message: message.split('\n')[0]!, offset: pos[0] }));
  const wrong = errors.length > 0 ? errors : recursiveAliases(document);
  if (wrong.length > 0)
    throw new ConfigError(
      file,
      wrong.map(({ message, offset }) => ({ path: '', message, line: lines.linePos(offset).line })),
    );
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    // An alias without its anchor, or aliases that would expand to a huge document.
    throw new ConfigError(file, [{ path: '', message: (error as Error).message }]);
  }
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw))
    throw new ConfigError(file, [{ path: '', message: 'must be a mapping with "models" and "plans"' }]);
  return { raw: raw as Record<string, unknown>, document, lines };
}

function flatten(error: ValidationError, above: Path): Problem[] {
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
