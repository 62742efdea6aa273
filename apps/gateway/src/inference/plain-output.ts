import { toStringBody, toWire } from '../upstream/json-text';
import { DeliveredText } from '../upstream/delivered-text';
import { type Output, outputOf, TEXT_FIELDS } from '../upstream/output-text';
import { estimateTokens, Prose } from '../prompt/token-estimate';
import type { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import type { InferenceRequest } from './body/inference-request';
import type { DeliveredOutput, AdmittedRequest } from './admitted-request';
import type { PlainResponse } from './plain-response';
import { isPossible, OUTPUT_SPARE_TOKENS } from './reported-usage';

/** 1 ms: more is counted in a turn of the event loop of its own. */
const MAX_UNASKED_BYTES = 16 * 1024;
/** The longest of all encodings, which are blanks: beyond so many characters a token nothing fits. */
const MAX_TOKEN_CHARS = 128;

/** What of an answer that is not streamed may go out, and what it has. */
export type PlainOutput =
  { kind: 'fits' | 'cut'; response: PlainResponse; output: DeliveredOutput } | { kind: 'refused'; reason: string };

/**
 * Holds an answer against what was asked for and held: no more choices (or vectors), and no choice longer than its cap
 * by the model's tokenizer. One that is longer is cut there, if that is honest: half a tool call or half a JSON
 * document is none, and logprobs would tell more than the text. A tool call or document that is whole by its backend's
 * own count goes out, if that count can be true.
 */
export async function fitPlain(
  admitted: Pick<AdmittedRequest, 'request' | 'hold' | 'model' | 'countText'>,
  response: PlainResponse,
  turns: TokenizerThrottle,
): Promise<PlainOutput> {
  const { request, model } = admitted;
  const { maxTokensPerChoice } = admitted.hold;
  const countText = (text: string) => admitted.countText(text);
  const { content } = response;
  // A choice, or a vector for each input.
  if (content.length > (request.kind === 'embedding' ? request.prompts : request.choices))
    return { kind: 'refused', reason: 'more choices than were asked for' };
  if (request.kind === 'embedding') return { kind: 'fits', response, output: { estimate: () => 0, tokens: () => 0 } };
  const choices: Record<string, unknown>[] = [];
  const outputs: (Output & { tokens?: number })[] = [];
  let cut = false;
  const asReported = reportedWithin(response, request, maxTokensPerChoice);
  const mostTokens = asReported === null ? 0 : Math.ceil(asReported / model.usageBand.min) + OUTPUT_SPARE_TOKENS;
  for (const choice of content) {
    const output = outputOf(choice);
    const tokens = await boundOf(output, maxTokensPerChoice, countText, turns);
    if (tokens === null || tokens <= maxTokensPerChoice) {
      choices.push(choice);
      outputs.push(tokens === null ? output : { ...output, tokens });
      continue;
    }
    if (asReported !== null) {
      choices.push(choice);
      outputs.push({ ...output, tokens: Math.max(output.least, within(output.text, mostTokens, countText)) });
      continue;
    }
    const shorter = canBeCut(request, choice, output) ? shorten(choice, maxTokensPerChoice, countText) : null;
    if (shorter === null) return { kind: 'refused', reason: 'longer than what was asked for' };
    choices.push(shorter);
    outputs.push(outputOf(shorter));
    cut = true;
  }
  const output = ofAll(outputs, countText);
  if (asReported !== null && outputs.some(({ tokens }) => tokens !== undefined && tokens > maxTokensPerChoice)) {
    const own = output.tokens();
    if (!isPossible(asReported, { least: own, most: own }, model.usageBand, OUTPUT_SPARE_TOKENS))
      return { kind: 'refused', reason: 'longer than what was asked for' };
  }
  if (!cut) return { kind: 'fits', response, output };
  return { kind: 'cut', response: { ...response, content: choices, contentJson: toWire(choices) }, output };
}

/** The backend's own count of an answer that must not be cut, where it is within what was asked for. */
function reportedWithin({ usage }: PlainResponse, request: InferenceRequest, max: number): number | null {
  if (!request.structuredOutput || usage === null || usage === 'unreadable') return null;
  return usage.completionTokens <= max * request.choices ? usage.completionTokens : null;
}

/**
 * Tokens of a choice, or some number above `max`; null where they are no more by their bytes, as most are: no text has
 * more tokens than bytes. Long ones wait for their turn.
 */
async function boundOf(
  { text, least }: Output,
  max: number,
  countText: (text: string) => number,
  turns: TokenizerThrottle,
): Promise<number | null> {
  if (least > max) return least;
  const bytes = text.length * 3 <= max ? 0 : Buffer.byteLength(text);
  if (bytes <= max) return null;
  // A turn, not a permission: what is not granted in time is counted all the same, as nothing goes out uncounted.
  if (bytes > MAX_UNASKED_BYTES) await turns.take(bytes);
  return Math.max(least, within(text, max, countText));
}

/** Stops counting where it is more than `max`. */
function within(text: string, max: number, countText: (text: string) => number): number {
  if (text.length > max * MAX_TOKEN_CHARS) return max + 1;
  return new DeliveredText(countText).tokensWith([{ choice: 0, text: toStringBody(text), least: 1 }], max);
}

/** All that it delivers are plain texts, and their end may be anywhere. */
function canBeCut(request: InferenceRequest, choice: Record<string, unknown>, { text, least }: Output): boolean {
  if (request.structuredOutput || least > 1) return false;
  if (choice['logprobs'] != null || choice['token_ids'] != null) return false;
  const plain = textsOf(choice);
  return plain.reduce((sum, [, value]) => sum + value.length, 0) === text.length;
}

function textsOf(choice: Record<string, unknown>): [string, string][] {
  return Object.entries(holderOf(choice)).filter(
    (member): member is [string, string] => TEXT_FIELDS.has(member[0]) && typeof member[1] === 'string',
  );
}

function holderOf(choice: Record<string, unknown>): Record<string, unknown> {
  const { message } = choice;
  return typeof message === 'object' && message !== null ? (message as Record<string, unknown>) : choice;
}

/** The choice with as much of its texts, one after the other, as has no more than `max` tokens together. */
function shorten(
  choice: Record<string, unknown>,
  max: number,
  countText: (text: string) => number,
): Record<string, unknown> {
  const kept = new DeliveredText(countText);
  const texts: Record<string, string> = {};
  for (const [field, value] of textsOf(choice)) {
    const piece = { choice: 0, text: toStringBody(value.slice(0, max * MAX_TOKEN_CHARS)), least: 0 };
    const body = kept.tokensWith([piece], max) <= max ? piece.text : kept.fitting([], piece, max);
    kept.add({ ...piece, text: body });
    texts[field] = JSON.parse(Buffer.from(`"${body}"`, 'latin1').toString('utf8')) as string;
  }
  const shorter = { ...holderOf(choice), ...texts };
  return choice['message'] == null
    ? { ...shorter, finish_reason: 'length' }
    : { ...choice, message: shorter, finish_reason: 'length' };
}

function ofAll(
  outputs: readonly (Output & { tokens?: number })[],
  countText: (text: string) => number,
): DeliveredOutput {
  const sum = (count: (text: string) => number) =>
    outputs.reduce((sum, { text, least, tokens }) => sum + (tokens ?? Math.max(least, count(text))), 0);
  const estimate = () => {
    const prose = new Prose();
    for (const { text, tokens } of outputs) if (tokens === undefined) prose.add(Buffer.from(text));
    return prose.isTrusted ? sum((text) => estimateTokens(Buffer.from(text))) : null;
  };
  return { estimate, tokens: () => sum(countText) };
}
