import { fromStringBody, toStringBody, toWire } from '../../upstream/wire/json-text';
import { DeliveredText } from '../../upstream/count/delivered-text';
import { type Output, outputOf, TEXT_FIELDS } from '../../upstream/wire/output-text';
import { copiesIn, withCopies } from '../../upstream/wire/reasoning-copies';
import { estimateTokens, Prose } from '../../prompt/token-estimate';
import type { TokenizerThrottle } from '../../prompt/tokenizer-throttle';
import { countTokens } from '../../prompt/tokenizer';
import type { CatalogModel } from '../../catalog/catalog';
import type { InferenceRequest } from '../../body/inference-request';
import type { DeliveredOutput, AdmittedRequest } from '../admitted-request';
import type { PlainResponse } from './plain-response';
import { isPossible, outputSpareTokens } from '../reported-usage';

/** Counting this much takes 1 ms. Longer texts wait for the tokenizer throttle. */
const MAX_UNTHROTTLED_BYTES = 16 * 1024;
/** Up to this length a text is counted as a whole: there is little to save by stopping at the limit. */
const MAX_WHOLE_CHARS = 4 * 1024;
/** The longest token of all encodings, a run of blanks. A text with more characters per allowed token cannot fit. */
const MAX_TOKEN_CHARS = 128;

/** The output of an answer with vectors, which has no text. */
const NO_OUTPUT: DeliveredOutput = { estimate: () => 0, tokens: () => 0, calls: 0, reasons: false };

/** What a plain answer was asked for. Plain data, which can be sent to a worker thread. */
export type RequestedAnswer = Pick<
  InferenceRequest,
  'kind' | 'choices' | 'prompts' | 'structuredOutput' | 'encodingFormat'
> &
  Pick<AdmittedRequest, 'maxTokensPerChoice' | 'identity'> &
  Pick<CatalogModel, 'tokenizer' | 'usageBand'>;

/** The part of a plain answer that may be sent, and its size. */
export type PlainOutput =
  { kind: 'fits' | 'cut'; response: PlainResponse; output: DeliveredOutput } | { kind: 'refused'; reason: string };

/**
 * Checks a plain answer against what its model was asked for: no more choices (or vectors) than requested, and no
 * choice above its token limit by the model's tokenizer. A longer choice is cut if the cut is honest. Half a tool call
 * or half a JSON document is useless, and `logprobs` would show more than the text: such an answer is refused. JSON
 * (`response_format`) that is within its limit by the backend's own count is sent if that count is plausible.
 */
export async function fitPlain(
  asked: RequestedAnswer,
  response: PlainResponse,
  turns: Pick<TokenizerThrottle, 'take'>,
): Promise<PlainOutput> {
  const { maxTokensPerChoice, usageBand } = asked;
  const countText = (text: string) => countTokens(asked.tokenizer, text);
  const { content } = response;
  // Choices, or a vector for each input.
  if (content.length > (asked.kind === 'embedding' ? asked.prompts : asked.choices))
    return { kind: 'refused', reason: 'the answer has more choices than requested' };
  if (asked.kind === 'embedding') return { kind: 'fits', response, output: NO_OUTPUT };
  const choices: Record<string, unknown>[] = [];
  const outputs: (Output & { tokens?: number })[] = [];
  let cut = false;
  const asReported = reportedWithin(response, asked);
  const mostTokens =
    asReported === null ? 0 : Math.ceil(asReported / usageBand.min) + outputSpareTokens(0, asked.choices);
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
    const shorter = canBeCut(asked, choice, output) ? shorten(choice, maxTokensPerChoice, countText) : null;
    if (shorter === null) return { kind: 'refused', reason: 'the answer is longer than requested' };
    choices.push(shorter);
    outputs.push(outputOf(shorter));
    cut = true;
  }
  const output = ofAll(outputs, countText);
  if (asReported !== null && outputs.some(({ tokens }) => tokens !== undefined && tokens > maxTokensPerChoice)) {
    const own = output.tokens();
    if (!isPossible(asReported, { least: own, most: own }, usageBand, outputSpareTokens(output.calls, asked.choices)))
      return { kind: 'refused', reason: 'the answer is longer than requested' };
  }
  if (!cut) return { kind: 'fits', response, output };
  return { kind: 'cut', response: { ...response, content: choices, contentJson: toWire(choices) }, output };
}

/** The backend's count of an answer that must not be cut, if it is within the limit. Null otherwise. */
function reportedWithin({ usage }: PlainResponse, asked: RequestedAnswer): number | null {
  if (!asked.structuredOutput || usage === null || usage === 'unreadable') return null;
  return usage.completionTokens <= asked.maxTokensPerChoice * asked.choices ? usage.completionTokens : null;
}

/**
 * The tokens of a choice, or some number above `max`. Null if the choice fits by its bytes, as most do: no text has
 * more tokens than bytes. Long texts wait for the throttle.
 */
async function boundOf(
  { text, least }: Output,
  max: number,
  countText: (text: string) => number,
  turns: Pick<TokenizerThrottle, 'take'>,
): Promise<number | null> {
  if (least > max) return least;
  const bytes = text.length * 3 <= max ? 0 : Buffer.byteLength(text);
  if (bytes <= max) return null;
  // The result is ignored: text that gets no turn in time is counted anyway, as nothing is sent uncounted.
  if (bytes > MAX_UNTHROTTLED_BYTES) await turns.take(bytes);
  return Math.max(least, within(text, max, countText));
}

/** The tokens of a text, or some number above `max`: counting stops there. */
function within(text: string, max: number, countText: (text: string) => number): number {
  if (text.length > max * MAX_TOKEN_CHARS) return max + 1;
  if (text.length <= MAX_WHOLE_CHARS) return Math.max(1, countText(text));
  return new DeliveredText(countText).tokensWith([{ choice: 0, text: toStringBody(text), least: 1 }], max);
}

/** Whether the choice delivers only plain text, which may end anywhere. */
function canBeCut(asked: RequestedAnswer, choice: Record<string, unknown>, { text, least }: Output): boolean {
  if (asked.structuredOutput || least > 1) return false;
  if (choice['logprobs'] != null || choice['token_ids'] != null) return false;
  const plain = textsOf(choice);
  return plain.reduce((sum, [, value]) => sum + value.length, 0) === text.length;
}

/** The plain texts of a choice by name, without a copy of another. */
function textsOf(choice: Record<string, unknown>): [string, string][] {
  const holder = holderOf(choice);
  const copies = copiesIn(holder)?.get(holder);
  return Object.entries(holder).filter(
    (member): member is [string, string] =>
      TEXT_FIELDS.has(member[0]) && !copies?.has(member[0]) && typeof member[1] === 'string',
  );
}

function holderOf(choice: Record<string, unknown>): Record<string, unknown> {
  const { message } = choice;
  return typeof message === 'object' && message !== null ? (message as Record<string, unknown>) : choice;
}

/** The choice with its texts, in their order, cut to `max` tokens in total. */
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
    texts[field] = fromStringBody(body);
  }
  const holder = holderOf(choice);
  const shorter = withCopies({ ...holder, ...texts }, holder);
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
  const calls = outputs.reduce((sum, one) => sum + one.calls, 0);
  return { estimate, tokens: () => sum(countText), calls, reasons: outputs.some(({ reasons }) => reasons) };
}
