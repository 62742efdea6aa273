import { RequestError } from './request-error';
import { mix } from '../generate/random';
import { measure } from '../generate/tokenizer';

export type Body = Record<string, unknown>;

const MAX_CHOICES = 128;
const MAX_STOPS = 16;
/** Twice the longest answer. All are in memory at once. */
const MAX_WORDS_TOKENS = 2_000_000;

/** The fields that chat and legacy completions share. */
export interface CompletionFields {
  model: string;
  stream: boolean;
  includeUsage: boolean;
  choices: number;
  maxTokens: number;
  stop: string[];
}

/** Reads and checks these fields. Throws `RequestError` 400. */
export function readCompletionFields(body: Body): CompletionFields {
  const options = body['stream_options'];
  return {
    model: readModel(body),
    stream: body['stream'] === true,
    includeUsage: isObject(options) && options['include_usage'] === true,
    choices: readCount(body, 'n', MAX_CHOICES) ?? 1,
    maxTokens: readCount(body, 'max_completion_tokens') ?? readCount(body, 'max_tokens') ?? Infinity,
    stop: readStop(body['stop']),
  };
}

/** Throws `RequestError` 400 if all answers of plain words to a request would be too long together. */
export function limitWords(answers: number, each: { answerTokens: number; maxTokens: number }): void {
  const tokens = answers * Math.min(each.answerTokens, each.maxTokens);
  if (tokens > MAX_WORDS_TOKENS)
    throw new RequestError(400, `all answers together have more than ${MAX_WORDS_TOKENS} tokens`, 'n', 'invalid_value');
}

export function readModel(body: Body): string {
  const model = body['model'];
  if (typeof model !== 'string' || model === '')
    throw new RequestError(400, 'you must provide a model parameter', 'model', 'missing_required_parameter');
  return model;
}

export function readCount(body: Body, name: string, max = Number.MAX_SAFE_INTEGER): number | null {
  const value = body[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw new RequestError(400, `${name} must be an integer from 1 to ${max}`, name, 'invalid_value');
  }
  return value;
}

function readStop(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const stops: unknown[] = Array.isArray(value) ? value : [value];
  if (stops.length > MAX_STOPS || !stops.every((stop) => typeof stop === 'string')) {
    throw new RequestError(400, `stop must be a string or at most ${MAX_STOPS} strings`, 'stop', 'invalid_value');
  }
  return stops.filter((stop) => stop !== '');
}

/** A prompt or an input: its number of tokens, and the hash that seeds its answer. */
export interface Text {
  tokens: number;
  hash: number;
}

/** Reads `prompt` or the `input` of embeddings: a string, strings, tokens, or lists of tokens. */
export function readTexts(value: unknown, param: string, max: number): Text[] {
  if (typeof value === 'string') return [measure(value)];
  if (!Array.isArray(value) || value.length === 0)
    throw new RequestError(400, `${param} must be a string or a non-empty array`, param, 'invalid_type');
  if (typeof value[0] === 'number') return [readTokens(value, param)];
  if (value.length > max)
    throw new RequestError(400, `${param} must have at most ${max} items`, param, 'invalid_value');
  return value.map((item: unknown) => (typeof item === 'string' ? measure(item) : readTokens(item, param)));
}

function readTokens(value: unknown, param: string): Text {
  if (!Array.isArray(value) || value.length === 0)
    throw new RequestError(400, `${param} has an item that is neither text nor tokens`, param, 'invalid_type');
  let hash = value.length;
  for (const token of value as unknown[]) {
    if (typeof token !== 'number' || !Number.isInteger(token) || token < 0)
      throw new RequestError(400, `${param} has a token that is not an integer`, param, 'invalid_type');
    hash = mix(hash, token);
  }
  return { tokens: value.length, hash };
}

export function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
