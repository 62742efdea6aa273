import { anyObject, valueFor } from './json-value';
import { mix } from './random';
import { measure, split } from './tokenizer';
import { words } from './words';
import { asciiJson } from './ascii-json';

/** What an answer has to be. */
export interface Brief {
  /** Length of plain words when nothing cuts them. */
  answerTokens: number;
  /** Infinity: no limit. */
  maxTokens: number;
  /** Texts before which the answer ends. */
  stop: readonly string[];
  form:
    | { kind: 'words' }
    | { kind: 'object' }
    | { kind: 'schema'; schema: unknown }
    | { kind: 'tool'; name: string; parameters: unknown };
}

export interface Answer {
  /** The content, or the arguments of the tool call: ASCII, a token each. */
  pieces: string[];
  /** Set when it is a tool call. */
  toolName: string | null;
  completionTokens: number;
  finishReason: 'stop' | 'length' | 'tool_calls';
}

/** The answer that brief and seed determine. Throws `SchemaError` when a schema cannot be met. */
export function composeAnswer(brief: Brief, seed: number): Answer {
  if (brief.form.kind === 'tool') return composeToolCall(brief.form.name, brief.form.parameters, brief.maxTokens, seed);
  const whole = brief.form.kind === 'words' ? words(seed, brief.answerTokens) : split(jsonText(brief.form, seed));
  const withinMax = whole.length > brief.maxTokens ? whole.slice(0, brief.maxTokens) : whole;
  const stopped = brief.stop.length > 0 ? stopAt(withinMax, brief.stop) : withinMax;
  // A cut within a token may leave more, smaller ones than there were.
  const pieces = stopped.slice(0, brief.maxTokens);
  const cutByMax = pieces.length < stopped.length || (stopped === withinMax && withinMax.length < whole.length);
  return { pieces, toolName: null, completionTokens: pieces.length, finishReason: cutByMax ? 'length' : 'stop' };
}

/**
 * The tokens of a call are those of its name and of its arguments. A name that `max_tokens` cuts is no call: nothing
 * usable was generated.
 */
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
 * What comes before the first stop text, in tokens of its own (a cut may fall within one); the same array when there is
 * none.
 */
function stopAt(pieces: string[], stop: readonly string[]): string[] {
  const text = pieces.join('');
  const at = Math.min(...stop.map((end) => text.indexOf(end)).filter((index) => index >= 0));
  return at === Infinity ? pieces : split(text.slice(0, at));
}
