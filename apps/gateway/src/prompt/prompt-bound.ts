import { countWithin } from './tokenizer';
import { InferenceError } from '../inference/errors';
import type { InferenceRequest } from '../inference/body/inference-request';
import { ALSO_IN_PROMPT } from '../inference/body/outgoing';
import type { BodyRules, PromptTokens } from '../inference/body/rules';
import { NOT_PASSED_ON_IN_MESSAGES } from '../inference/body/message-schema';
import type { ChatCompletionRequest, CompletionRequest } from '../inference/body/schemas';

/** What counting needs to know of a model. */
export type CountingRules = Pick<
  BodyRules,
  | 'contextTokens'
  | 'tokenizer'
  | 'templateTokensPerMessage'
  | 'templateTokens'
  | 'maxTokensPerImage'
  | 'maxTokensPerAudio'
>;

/**
 * What a chat template may put around a message, and around all of them, beyond what the model's configuration says and
 * what the body's own syntax already counts.
 */
const SPARE_TOKENS_PER_MESSAGE = 8;
const SPARE_TOKENS = 64;

/**
 * OpenAI's documented formula: beside its texts a message costs 3 tokens (the model's `templateTokensPerMessage`), a
 * name 1, and 3 begin the answer (`templateTokens`).
 */
const TOKENS_PER_NAME = 1;
/** What templates write around tools beyond the tools' own JSON, and around each of them. */
const TEMPLATE_TOKENS_OF_TOOLS = 32;
const TEMPLATE_TOKENS_PER_TOOL = 8;

type Body = Record<string, unknown>;

/**
 * A sound upper bound without counting: every token is at least one byte of what goes out, JSON escapes only lengthen,
 * and each message has more syntax there than a template adds. Costs nothing; about four times too high for English.
 * Two things can be longer in the prompt: a number with an exponent, and fields that are rendered into each of several
 * prompts.
 */
export function cheapBound(request: InferenceRequest, model: CountingRules): number {
  const { bytes, structured, growthBytes } = request.outgoing;
  const rendered = structured ? (bytes + growthBytes) * Math.max(1, request.prompts) : bytes;
  return (
    rendered +
    SPARE_TOKENS +
    model.templateTokens +
    request.messages * (SPARE_TOKENS_PER_MESSAGE + model.templateTokensPerMessage) +
    mediaTokens(request, model)
  );
}

/** At the most that one of each can cost. */
export function mediaTokens(
  { images, audio }: InferenceRequest,
  { maxTokensPerImage, maxTokensPerAudio }: CountingRules,
): number {
  return images.count * (maxTokensPerImage ?? 0) + audio.count * (maxTokensPerAudio ?? 0);
}

/** The prompts of a completion or the inputs of embeddings; none of a chat. */
function promptsOf(kind: InferenceRequest['kind'], body: Body): (string | number[])[] {
  if (kind === 'chat') return [];
  const prompts = (kind === 'completion' ? body['prompt'] : body['input']) as CompletionRequest['prompt'];
  const single = typeof prompts === 'string' || typeof prompts[0] === 'number';
  return (single ? [prompts] : prompts) as (string | number[])[];
}

/**
 * Counts the prompt with the model's tokenizer: exact for plain text chats where the template is as configured, an
 * upper bound where images are in it, and with `templateSlack` where tools are. Infinity as soon as a part is longer
 * than the context: no time is spent on the rest.
 */
export function countPrompt(request: InferenceRequest, model: CountingRules): PromptTokens {
  return (request.counted ??= count(request, request.body!, model));
}

function count(request: InferenceRequest, body: Body, model: CountingRules): PromptTokens {
  const counter = new Counter(model);
  if (request.kind === 'chat') {
    for (const message of (body as ChatCompletionRequest).messages) countMessage(counter, message);
    counter.add(model.templateTokens + mediaTokens(request, model));
    countOtherFields(counter, request, body);
    return { total: counter.tokens, longest: counter.tokens };
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
  return { total: total + counter.tokens * parts.length, longest: longest + counter.tokens };
}

/** Counts the prompt. Throws InferenceError context_length_exceeded when it leaves no room for one token of output. */
export function countWithinContext(request: InferenceRequest, model: CountingRules & { id: string }): PromptTokens {
  const counted = countPrompt(request, model);
  if (counted.longest + Math.min(1, request.choices) <= model.contextTokens) return counted;
  const has = Number.isFinite(counted.longest) ? `${counted.longest} tokens` : 'more';
  throw new InferenceError('context_length_exceeded', {
    message: `The context of '${model.id}' is ${model.contextTokens} tokens; the prompt has ${has}.`,
    param: request.kind === 'chat' ? 'messages' : request.kind === 'completion' ? 'prompt' : 'input',
  });
}

/**
 * By how much a template may exceed our count: only for tools, which every template writes in its own way. What is held
 * is the count and this; what is charged is without it.
 */
export function templateSlack({ tools }: InferenceRequest): number {
  return tools === 0 ? 0 : TEMPLATE_TOKENS_OF_TOOLS + tools * TEMPLATE_TOKENS_PER_TOOL;
}

/** No prompt of this form has fewer: what is known without counting. */
export function leastPromptTokens(request: InferenceRequest, model: CountingRules): number {
  return request.kind === 'chat' ? request.messages * model.templateTokensPerMessage + model.templateTokens : 0;
}

class Counter {
  tokens = 0;
  constructor(readonly model: CountingRules) {}

  add(tokens: number): void {
    this.tokens += tokens;
  }

  text(value: unknown): void {
    if (value === null || value === undefined || this.tokens === Infinity) return;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    this.tokens += countWithin(this.model.tokenizer, text, Math.max(0, this.model.contextTokens - this.tokens));
  }
}

function countMessage(counter: Counter, message: ChatCompletionRequest['messages'][number]): void {
  counter.add(counter.model.templateTokensPerMessage);
  for (const [field, value] of Object.entries(message)) {
    if (field === 'name' && value !== null) counter.add(TOKENS_PER_NAME);
    if ((NOT_PASSED_ON_IN_MESSAGES as readonly string[]).includes(field)) continue;
    if (field !== 'content' || !Array.isArray(value)) {
      counter.text(value);
      continue;
    }
    for (const part of value as { type: string; text?: string; refusal?: string }[]) {
      // What an image or a sound costs is not in its bytes: the model's maximum stands for it.
      counter.text(part.text ?? part.refusal);
    }
  }
}

function countOtherFields(counter: Counter, { outgoing }: InferenceRequest, body: Body): void {
  for (const field of ALSO_IN_PROMPT) counter.text(body[field]);
  for (const { rendered, json } of outgoing.extras) if (rendered) counter.text(json);
}
