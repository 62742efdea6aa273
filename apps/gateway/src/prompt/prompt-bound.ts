import { OFTEN_LEFT_OUT, thoughtIn } from './thoughts';
import { countWithin } from './tokenizer';
import { InferenceError } from '../inference-errors';
import type { InferenceRequest } from '../body/inference-request';
import { INDENTED_FIELDS, indented } from '../body/layout';
import { ALSO_IN_PROMPT, isRenderedByAll, type Outgoing } from '../body/outgoing';
import type { BodyRules, PromptTokens } from '../body/rules';
import { MEDIA_TYPES } from '../body/message-schema';
import { maxTokensOfMedia } from '../body/model-rules';
import type { ChatCompletionRequest, CompletionRequest } from '../body/schemas';

/** The properties of a model that counting needs. */
export type CountingRules = Pick<
  BodyRules,
  | 'contextTokens'
  | 'tokenizer'
  | 'templateTokensPerMessage'
  | 'templateTokens'
  | 'maxTokensPerImage'
  | 'maxTokensPerAudio'
  | 'maxTokensPerVideo'
  | 'maxTokensPerFile'
>;

/**
 * A margin for a chat template, for each message and for the whole chat. It comes on top of the configured template
 * tokens and of the syntax of the body.
 */
const SPARE_TOKENS_PER_MESSAGE = 8;
const SPARE_TOKENS = 64;

/**
 * OpenAI's documented formula: a message costs 3 tokens (`templateTokensPerMessage`) beside its texts, a name costs 1,
 * and the start of the answer costs 3 (`templateTokens`).
 */
const TOKENS_PER_NAME = 1;
/**
 * The begin and the end of a sequence, or `[CLS]` and `[SEP]`: engines add them to each prompt that has no template.
 */
const SPECIAL_TOKENS_PER_PROMPT = 2;
/** Tokens that templates add for the list of tools, and for each tool, beside the JSON of the tools. */
const TEMPLATE_TOKENS_OF_TOOLS = 32;
const TEMPLATE_TOKENS_PER_TOOL = 8;
/**
 * Indented JSON is counted up to this many bytes (10 ms), or up to this multiple of a larger body. Otherwise its bytes
 * are its bound. Ordinary tools have two to five times the bytes of their compact form, but a list of short items deep
 * in a schema has a hundred times as many.
 */
const MOST_INDENTED_BYTES = 96 * 1024;
const MOST_INDENTED_PARTS = 4;
/** A tokenizer other than the configured one may make some more tokens of a text: this part of the prompt. */
const OTHER_TOKENIZER_PART = 1 / 8;

type Body = Record<string, unknown>;

/**
 * A sound upper bound that needs no counting. Each token is at least one byte of the outgoing body, JSON escapes only
 * lengthen it, and each message, and each of its parts, has more syntax there than a template adds. For English it is
 * about four times too high. It adds the growth of numbers with an exponent, the newlines and blanks of tools that a
 * template indents, and what else templates add to JSON. It counts fields that are rendered into several prompts once
 * for each.
 */
export function cheapBound(request: InferenceRequest, model: CountingRules): number {
  const { bytes, structured, growthBytes, layoutBytes, rewrittenTokens } = request.outgoing;
  const rendered = bytes + growthBytes + layoutBytes + rewrittenTokens;
  return (
    (structured ? rendered * Math.max(1, request.prompts) : bytes + rewrittenTokens) +
    SPARE_TOKENS +
    model.templateTokens +
    request.messages * (SPARE_TOKENS_PER_MESSAGE + model.templateTokensPerMessage) +
    mediaTokens(request, model)
  );
}

/** Each image, sound, video and file at the maximum of the model. */
export function mediaTokens({ media }: InferenceRequest, model: CountingRules): number {
  const maxTokens = maxTokensOfMedia(model);
  return MEDIA_TYPES.reduce((tokens, type) => tokens + media[type].count * (maxTokens[type] ?? 0), 0);
}

/** The prompts of a completion, or the inputs of an embedding. Empty for a chat. */
function promptsOf(kind: InferenceRequest['kind'], body: Body): (string | number[])[] {
  if (kind === 'chat') return [];
  const prompts = (kind === 'completion' ? body['prompt'] : body['input']) as CompletionRequest['prompt'];
  const single = typeof prompts === 'string' || typeof prompts[0] === 'number';
  return (single ? [prompts] : prompts) as (string | number[])[];
}

/**
 * Counts the prompt with the tokenizer of the model, unless a worker has counted it. The count is exact for a plain
 * text chat with the configured template. With images it is an upper bound. With tools, `most` is the upper bound: the
 * indented JSON is counted too. Without a template, `most` has the ends of each prompt. Infinity as soon as a part
 * exceeds the context, and the rest is then not counted. Each call counts again: `PromptEstimate` keeps the result.
 */
export function countPrompt(request: InferenceRequest, model: CountingRules): PromptTokens {
  return request.counted ?? count(request, request.body!, model);
}

function count(request: InferenceRequest, body: Body, model: CountingRules): PromptTokens {
  const counter = new Counter(model, request.outgoing.rewrittenTokens + request.outgoing.jointTokens);
  if (request.kind === 'chat') {
    for (const message of (body as ChatCompletionRequest).messages) countMessage(counter, message);
    counter.add(model.templateTokens + mediaTokens(request, model));
    countOtherFields(counter, request, body);
    const { tokens, optionalTokens } = counter;
    const most = tokens + counter.addedTokens + addedMargin(request);
    return { total: tokens, longest: tokens, least: tokens - optionalTokens, most };
  }
  const parts = promptsOf(request.kind, body);
  let total = 0;
  let longest = 0;
  for (const part of parts) {
    const tokens = typeof part === 'string' ? countWithin(model.tokenizer, part, model.contextTokens) : part.length;
    total += tokens;
    longest = Math.max(longest, tokens);
  }
  countOtherFields(counter, request, body);
  total += counter.tokens * parts.length;
  const most = total + counter.addedTokens * parts.length + addedMargin(request);
  return { total, longest: longest + counter.tokens, least: total - counter.optionalTokens * parts.length, most };
}

/** The bytes that `countPrompt` counts, at 55 ns each and more. */
export function bytesToCount({ outgoing }: InferenceRequest): number {
  return outgoing.bytes + (countsIndented(outgoing) ? outgoing.indentedBytes : 0);
}

function countsIndented({ bytes, indentedBytes }: Outgoing): boolean {
  return indentedBytes <= Math.max(MOST_INDENTED_BYTES, bytes * MOST_INDENTED_PARTS);
}

/**
 * Throws InferenceError context_length_exceeded when a counted prompt leaves no room for one token of output.
 * @param longest its longest part
 */
export function refuseLongPrompt(
  longest: number,
  request: InferenceRequest,
  model: CountingRules & { id: string },
): void {
  if (longest + Math.min(1, request.choices) <= model.contextTokens) return;
  const has = Number.isFinite(longest) ? `has ${longest} tokens and ` : '';
  throw new InferenceError('context_length_exceeded', {
    message:
      `The context of '${model.id}' is ${model.contextTokens} tokens; ` + `the prompt ${has}is too long. Shorten it.`,
    param: request.kind === 'chat' ? 'messages' : request.kind === 'completion' ? 'prompt' : 'input',
  });
}

/**
 * Throws InferenceError context_length_exceeded when the prompt and the `max_tokens` that the client named exceed the
 * context, unless the model lowers it. Media count as nothing here: only the backend knows their tokens.
 * @param longest the longest part of the counted prompt
 */
export function refuseBeyondContext(
  longest: number,
  request: InferenceRequest,
  model: CountingRules & { id: string; clamp: boolean },
): void {
  const { maxTokens, maxTokensNamed, maxTokensField } = request;
  if (!maxTokensNamed || model.clamp) return;
  const promptTokens = longest - mediaTokens(request, model);
  if (promptTokens + maxTokens! <= model.contextTokens) return;
  throw new InferenceError('context_length_exceeded', {
    message:
      `The context of '${model.id}' is ${model.contextTokens} tokens; the prompt has ${promptTokens} and ` +
      `'${maxTokensField}' asks for ${maxTokens}. Lower it, or shorten the prompt.`,
    param: maxTokensField,
  });
}

/**
 * How many tokens of its own an engine may add to our count. A chat needs a margin only for tools, because each
 * template writes them differently. Other prompts need one for the ends of each. It is part of the hold and never
 * charged as our count.
 */
export function addedMargin({ tools, prompts }: InferenceRequest): number {
  const ofTools = tools === 0 ? 0 : TEMPLATE_TOKENS_OF_TOOLS + tools * TEMPLATE_TOKENS_PER_TOOL;
  return ofTools + prompts * SPECIAL_TOKENS_PER_PROMPT;
}

/**
 * By how many tokens a backend's count of a counted chat may be higher: what its template and its tokenizer add. Other
 * prompts have no template, and their output is short unless the client names it.
 */
export function templateRoom(
  { kind, messages, outgoing }: InferenceRequest,
  { total, longest, most }: PromptTokens,
): number {
  if (kind !== 'chat') return 0;
  // Few templates escape results of tools, and what that may add is often much.
  const ofToolsAndJoints = Math.max(0, most - total - outgoing.rewrittenTokens);
  return (
    SPARE_TOKENS + messages * SPARE_TOKENS_PER_MESSAGE + ofToolsAndJoints + Math.ceil(longest * OTHER_TOKENIZER_PART)
  );
}

/** Lower bound of the prompt, known without counting. */
export function leastPromptTokens(request: InferenceRequest, model: CountingRules): number {
  return request.kind === 'chat' ? request.messages * model.templateTokensPerMessage + model.templateTokens : 0;
}

class Counter {
  tokens = 0;
  /** Those of fields that not every engine renders. */
  optionalTokens = 0;
  private compactTokens = 0;
  private indentedTokens = 0;
  /** @param rewrittenTokens what templates add beside an indentation, with joints (`Outgoing`) */
  constructor(
    readonly model: CountingRules,
    private readonly rewrittenTokens: number,
  ) {}

  /** The tokens that templates add to the others by their form of JSON, as far as the context has room for them. */
  get addedTokens(): number {
    return Math.max(0, Math.min(this.indentedTokens - this.compactTokens + this.rewrittenTokens, this.room));
  }

  private get room(): number {
    return Math.max(0, this.model.contextTokens - this.tokens);
  }

  add(tokens: number): void {
    this.tokens += tokens;
  }

  text(value: unknown): void {
    if (value === null || value === undefined || this.tokens === Infinity) return;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    this.tokens += countWithin(this.model.tokenizer, text, this.room);
  }

  /** A value that a template may indent. If not counted, its bytes must be added with `addIndented`. */
  indentable(value: unknown, isCounted: boolean): void {
    const { tokens, room } = this;
    this.text(value);
    if (typeof value !== 'object' || value === null || this.tokens === Infinity) return;
    this.compactTokens += this.tokens - tokens;
    if (isCounted) this.indentedTokens += countWithin(this.model.tokenizer, indented(value), room);
  }

  /** @param before the tokens before some that not every engine renders */
  noteOptional(before: number): void {
    if (this.tokens < Infinity) this.optionalTokens += this.tokens - before;
  }

  addIndented(tokens: number): void {
    this.indentedTokens += tokens;
  }
}

/** A content part, as far as it has text. */
export interface TextOfPart {
  text?: string;
  refusal?: string;
  file?: { filename?: string };
}

/** The text of a part. A backend may show the model the name of a file. */
export function textOf({ text, refusal, file }: TextOfPart): string | undefined {
  return text ?? refusal ?? file?.filename;
}

function countMessage(counter: Counter, message: ChatCompletionRequest['messages'][number]): void {
  counter.add(counter.model.templateTokensPerMessage);
  for (const [field, value] of Object.entries(message)) {
    if (field === 'name' && value !== null) counter.add(TOKENS_PER_NAME);
    if (field !== 'content' || !Array.isArray(value)) {
      const { tokens } = counter;
      counter.text(value);
      if (OFTEN_LEFT_OUT.has(field)) counter.noteOptional(tokens);
      continue;
    }
    // The bytes of media do not say what they cost. `mediaTokens` adds the maximum of the model.
    for (const part of value as TextOfPart[]) counter.text(textOf(part));
  }
  const thought = thoughtIn(message);
  if (thought !== '') counter.optionalTokens += countWithin(counter.model.tokenizer, thought, counter.tokens);
}

function countOtherFields(counter: Counter, { outgoing }: InferenceRequest, body: Body): void {
  const isCounted = countsIndented(outgoing);
  for (const field of ALSO_IN_PROMPT) {
    const { tokens } = counter;
    if (INDENTED_FIELDS.has(field)) counter.indentable(body[field], isCounted);
    else counter.text(body[field]);
    if (!isRenderedByAll(field, body)) counter.noteOptional(tokens);
  }
  const { tokens } = counter;
  for (const { name, rendered, json } of outgoing.extras)
    if (rendered && typeof body[name] === 'object') counter.indentable(body[name], isCounted);
    else if (rendered) counter.text(json);
  counter.noteOptional(tokens);
  if (!isCounted) counter.addIndented(outgoing.indentedBytes);
}
