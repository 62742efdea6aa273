import { FaultRule, readFaults } from './fault-rules';
import { ConfigError, readBoolean, readFields, readNumber, readString } from './read';

/** How a model behaves. Every field has a default, so `{}` is a whole configuration. */
export interface ModelSettings {
  /** Speed of generation. 0 is as fast as possible. */
  tokensPerSecond: number;
  /** Time from the request to the first token. The headers of a stream are sent at once. */
  firstTokenDelayMs: number;
  /** Length of an answer of plain words. `max_tokens` can shorten it, never lengthen it. */
  answerTokens: number;
  /** Reported as `usage.prompt_tokens_details.cached_tokens`, at most the prompt's tokens. Not reported if absent. */
  cachedTokens?: number;
  /** Length of an embedding when the request names no `dimensions`. */
  embeddingDimensions: number;
  faults: FaultRule[];
}

/** The configuration. Everything has a default. */
export interface SimulatorConfig {
  /** If true, a model that is not in `models` gets 404. Otherwise every name is a model, with `defaults`. */
  strict?: boolean;
  /** If set, a request under /v1 without `Authorization: Bearer <apiKey>` gets 401. */
  apiKey?: string;
  /** How many of the latest requests are kept for tests (`GET /_simulator/requests`). Default 0. */
  recordRequests?: number;
  defaults?: Partial<ModelSettings>;
  models?: Record<string, Partial<ModelSettings>>;
}

export interface Settings {
  strict: boolean;
  apiKey: string | null;
  recordRequests: number;
  defaults: ModelSettings;
  models: Map<string, ModelSettings>;
}

export const DEFAULTS: ModelSettings = {
  tokensPerSecond: 0,
  firstTokenDelayMs: 0,
  answerTokens: 60,
  embeddingDimensions: 256,
  faults: [],
};

export const MAX_EMBEDDING_DIMENSIONS = 4_096;
const MAX_DELAY_MS = 600_000;
const MAX_TOKENS_PER_SECOND = 1_000_000;
const MAX_ANSWER_TOKENS = 1_000_000;
const MAX_TAG_CHARS = 200;
const MAX_RECORDED_REQUESTS = 10_000;

/** Checks a configuration and fills in the defaults. Throws `ConfigError` with the path of the first wrong field. */
export function readSettings(config: unknown): Settings {
  const fields = readFields(config, '', ['strict', 'apiKey', 'recordRequests', 'defaults', 'models']);
  const defaults = readModelSettings(fields['defaults'] ?? {}, 'defaults', DEFAULTS);
  const models = new Map<string, ModelSettings>();
  const configured: unknown = fields['models'] ?? {};
  for (const [name, model] of Object.entries(readFields(configured, 'models', null))) {
    models.set(name, readModelSettings(model ?? {}, `models.${name}`, defaults));
  }
  return {
    strict: readBoolean(fields['strict'] ?? false, 'strict'),
    apiKey: fields['apiKey'] === undefined ? null : readString(fields['apiKey'], 'apiKey'),
    recordRequests: readNumber(fields['recordRequests'] ?? 0, 'recordRequests', {
      min: 0,
      max: MAX_RECORDED_REQUESTS,
      integer: true,
    }),
    defaults,
    models,
  };
}

/**
 * Reads one model's settings, with defaults from `base`. A request's `simulator` field has the same form. It may also
 * have a `tag`, which is any string of at most 200 characters.
 */
export function readModelSettings(value: unknown, path: string, base: ModelSettings): ModelSettings {
  const fields = readFields(value, path, [...MODEL_FIELDS, 'tag']);
  const settings = { ...base };
  for (const name of NUMBER_FIELDS) {
    if (fields[name] !== undefined) settings[name] = readNumber(fields[name], `${path}.${name}`, NUMBERS[name]);
  }
  if (fields['faults'] !== undefined) settings.faults = readFaults(fields['faults'], `${path}.faults`);
  if (fields['tag'] !== undefined) readString(fields['tag'], `${path}.tag`, MAX_TAG_CHARS);
  return settings;
}

const NUMBERS = {
  tokensPerSecond: { min: 0, max: MAX_TOKENS_PER_SECOND },
  firstTokenDelayMs: { min: 0, max: MAX_DELAY_MS },
  answerTokens: { min: 1, max: MAX_ANSWER_TOKENS, integer: true },
  cachedTokens: { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true },
  embeddingDimensions: { min: 1, max: MAX_EMBEDDING_DIMENSIONS, integer: true },
};
const NUMBER_FIELDS = Object.keys(NUMBERS) as (keyof typeof NUMBERS)[];
const MODEL_FIELDS = [...NUMBER_FIELDS, 'faults'];

export { ConfigError };
