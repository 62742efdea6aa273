import { Budget } from './budget';
import { anyObject, valueFor } from './json-value';
import { mix } from './random';
import { measure, split } from './tokenizer';
import { words } from './words';
import { asciiJson } from './ascii-json';

interface ToolForm {
  kind: 'tool';
  name: string;
  parameters: unknown;
}

/** The requirements of an answer. */
export interface Brief {
  /** Length of an answer of plain words, if nothing cuts it. */
  answerTokens: number;
  /** Infinity: no limit. */
  maxTokens: number;
  /** The answer ends before the first of these texts. */
  stop: readonly string[];
  form: { kind: 'words' } | { kind: 'object' } | { kind: 'schema'; schema: unknown } | ToolForm;
}

export interface Answer {
  /** The content, or the arguments of the tool call. Each piece is one token and ASCII. */
  pieces: string[];
  /** Null if the answer is no tool call. */
  toolName: string | null;
  completionTokens: number;
  finishReason: 'stop' | 'length' | 'tool_calls';
}

/** The number of words at the end that depend on the length of the whole text. */
const WORDS_OF_END = 2;

/**
 * Composes an answer, the same for the same brief and seed. Throws `SchemaError` if a schema cannot be satisfied, or
 * not within the budget. All answers to a request share one.
 */
export function composeAnswer({ form, ...brief }: Brief, seed: number, budget = new Budget()): Answer {
  if (form.kind === 'tool') return composeToolCall(form, brief.maxTokens, seed, budget);
  const whole = form.kind === 'words' ? plainWords(brief, seed) : split(jsonText(form, seed, budget));
  const withinMax = whole.length > brief.maxTokens ? whole.slice(0, brief.maxTokens) : whole;
  const stopped = brief.stop.length > 0 ? stopAt(withinMax, brief.stop) : withinMax;
  // A cut within a token may leave more tokens than before, each shorter.
  const pieces = stopped.slice(0, brief.maxTokens);
  const cutByMax = pieces.length < stopped.length || (stopped === withinMax && withinMax.length < whole.length);
  return { pieces, toolName: null, completionTokens: pieces.length, finishReason: cutByMax ? 'length' : 'stop' };
}

/** A client may ask for far more words than `max_tokens` leaves, so only those are made that decide the answer. */
function plainWords({ answerTokens, maxTokens }: Omit<Brief, 'form'>, seed: number): string[] {
  return words(seed, Math.min(answerTokens, maxTokens + WORDS_OF_END));
}

/** A call costs the tokens of its name and its arguments. A call whose name `max_tokens` cuts is not returned. */
function composeToolCall({ name, parameters }: ToolForm, maxTokens: number, seed: number, budget: Budget): Answer {
  const nameTokens = measure(name).tokens;
  if (nameTokens > maxTokens)
    return { pieces: [], toolName: null, completionTokens: maxTokens, finishReason: 'length' };
  const whole = split(asciiJson(valueFor(parameters ?? { type: 'object' }, seed, budget)));
  const pieces = whole.slice(0, maxTokens - nameTokens);
  return {
    pieces,
    toolName: name,
    completionTokens: nameTokens + pieces.length,
    finishReason: pieces.length < whole.length ? 'length' : 'tool_calls',
  };
}

function jsonText(
  form: { kind: 'object' } | { kind: 'schema'; schema: unknown },
  seed: number,
  budget: Budget,
): string {
  return asciiJson(form.kind === 'object' ? anyObject(seed) : valueFor(form.schema, mix(seed, 1), budget));
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
