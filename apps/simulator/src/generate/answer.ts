import { anyObject, valueFor } from './json-value';
import { mix } from './random';
import { measure, split } from './tokenizer';
import { words } from './words';
import { asciiJson } from './ascii-json';

/** The requirements of an answer. */
export interface Brief {
  /** Length of an answer of plain words, if nothing cuts it. */
  answerTokens: number;
  /** Infinity: no limit. */
  maxTokens: number;
  /** The answer ends before the first of these texts. */
  stop: readonly string[];
  form:
    | { kind: 'words' }
    | { kind: 'object' }
    | { kind: 'schema'; schema: unknown }
    | { kind: 'tool'; name: string; parameters: unknown };
}

export interface Answer {
  /** The content, or the arguments of the tool call. Each piece is one token and ASCII. */
  pieces: string[];
  /** Null if the answer is no tool call. */
  toolName: string | null;
  completionTokens: number;
  finishReason: 'stop' | 'length' | 'tool_calls';
}

/** So many words at the end depend on the length of the whole text. */
const WORDS_OF_END = 2;

/** Composes an answer, the same for the same brief and seed. Throws `SchemaError` if a schema cannot be satisfied. */
export function composeAnswer(brief: Brief, seed: number): Answer {
  if (brief.form.kind === 'tool') return composeToolCall(brief.form.name, brief.form.parameters, brief.maxTokens, seed);
  const whole = brief.form.kind === 'words' ? plainWords(brief, seed) : split(jsonText(brief.form, seed));
  const withinMax = whole.length > brief.maxTokens ? whole.slice(0, brief.maxTokens) : whole;
  const stopped = brief.stop.length > 0 ? stopAt(withinMax, brief.stop) : withinMax;
  // A cut within a token may leave more tokens than before, each shorter.
  const pieces = stopped.slice(0, brief.maxTokens);
  const cutByMax = pieces.length < stopped.length || (stopped === withinMax && withinMax.length < whole.length);
  return { pieces, toolName: null, completionTokens: pieces.length, finishReason: cutByMax ? 'length' : 'stop' };
}

/** A client may ask for far more words than `max_tokens` leaves, so only those are made that decide the answer. */
function plainWords({ answerTokens, maxTokens }: Brief, seed: number): string[] {
  return words(seed, Math.min(answerTokens, maxTokens + WORDS_OF_END));
}

/** A call costs the tokens of its name and its arguments. A call whose name `max_tokens` cuts is not returned. */
function composeToolCall(name: string, parameters: unknown, maxTokens: number, seed: number): Answer {
  const nameTokens = measure(name).tokens;
  if (nameTokens > maxTokens)
    return { pieces: [], toolName: null, completionTokens: maxTokens, finishReason: 'length' };
  const whole = split(asciiJson(valueFor(parameters ?? { type: 'object' }, seed)));
  const pieces = whole.slice(0, maxTokens - nameTokens);
  return {
    pieces,
    toolName: name,
    completionTokens: nameTokens + pieces.length,
    finishReason: pieces.length < whole.length ? 'length' : 'tool_calls',
  };
}

function jsonText(form: { kind: 'object' } | { kind: 'schema'; schema: unknown }, seed: number): string {
  return asciiJson(form.kind === 'object' ? anyObject(seed) : valueFor(form.schema, mix(seed, 1)));
}

/**
 * Returns the text before the first stop text, split into tokens again because the cut may be within a token. Returns
 * the same array if no stop text occurs.
 */
function stopAt(pieces: string[], stop: readonly string[]): string[] {
  const text = pieces.join('');
  const at = Math.min(...stop.map((end) => text.indexOf(end)).filter((index) => index >= 0));
  return at === Infinity ? pieces : split(text.slice(0, at));
}
