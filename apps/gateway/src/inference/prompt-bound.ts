import type { CatalogModel } from '../catalog/catalog';
import { countWithin } from '../catalog/tokenizer';
import type { Ask } from './ask';
import type { ChatCompletionRequest, CompletionRequest } from './schemas';

/** What a chat template may put around a message, and around all of them, beyond what the model's configuration says and what the body's own syntax already counts. */
const SPARE_TOKENS_PER_MESSAGE = 8;
const SPARE_TOKENS = 64;

/** OpenAI's documented formula: beside its texts a message costs 3 tokens (the model's `templateTokensPerMessage`), a name 1, and 3 begin the answer (`templateTokens`). */
const TOKENS_PER_NAME = 1;
/** What templates write around tools beyond the tools' own JSON, and around each of them. */
const TEMPLATE_TOKENS_OF_TOOLS = 32;
const TEMPLATE_TOKENS_PER_TOOL = 8;

/** Fields beside messages and prompts that backends render into the prompt. */
const ALSO_IN_PROMPT = [
  'tools',
  'functions',
  'tool_choice',
  'function_call',
  'response_format',
  'suffix',
  'documents',
  'chat_template_kwargs',
];

/** Tokens of a prompt: of all its parts, and of the longest that must fit into the context by itself. */
export interface PromptTokens {
  total: number;
  longest: number;
}

/** A number such as 1e20, which is written out when it is rendered: longer by up to 17 characters. As bytes of the body; in a text it counts for nothing. */
const EXPONENT = /[0-9][eE][+-]?[0-9]/g;
const MOST_GROWTH_BYTES = 17;

/**
 * A sound upper bound without counting: every token is at least one byte of text, JSON escapes only lengthen, and each message has more syntax
 * in the body than a template adds. Costs nothing; about four times too high for English. Two things can be longer in the prompt than in the body: a number with an
 * exponent, and fields that are rendered into each of several prompts.
 */
export function cheapBound(ask: Ask, model: CatalogModel): number {
  const rendered = hasRenderedValues(ask);
  const bytes = ask.raw.length + (rendered ? growthBytes(ask.raw) : 0);
  return (
    bytes * (rendered ? promptsOf(ask).length || 1 : 1) +
    SPARE_TOKENS +
    model.templateTokens +
    ask.messages * (SPARE_TOKENS_PER_MESSAGE + model.templateTokensPerMessage) +
    mediaTokens(ask, model)
  );
}

/** At the most that one of each can cost. */
function mediaTokens({ images, audio }: Ask, { maxTokensPerImage, maxTokensPerAudio }: CatalogModel): number {
  return images.count * (maxTokensPerImage ?? 0) + audio.count * (maxTokensPerAudio ?? 0);
}

/** Whether there is anything in the prompt beside texts and lists of tokens: tools, a schema, calls, a suffix. */
function hasRenderedValues({ kind, body }: Ask): boolean {
  if (ALSO_IN_PROMPT.some((field) => body[field] != null)) return true;
  return kind === 'chat' && (body as ChatCompletionRequest).messages.some(hasStructure);
}

function hasStructure(message: ChatCompletionRequest['messages'][number]): boolean {
  for (const field in message) {
    const value: unknown = message[field as keyof typeof message];
    if (typeof value === 'string' || value === null) continue;
    if (field !== 'content' || !Array.isArray(value)) return true;
    if (value.some((part: { text?: unknown }) => typeof part.text !== 'string')) return true;
  }
  return false;
}

function growthBytes(raw: Buffer): number {
  return MOST_GROWTH_BYTES * (raw.toString('latin1').match(EXPONENT)?.length ?? 0);
}

/** The prompts of a completion or the inputs of embeddings; none of a chat. */
function promptsOf({ kind, body }: Ask): (string | number[])[] {
  if (kind === 'chat') return [];
  const prompts = (kind === 'completion' ? body['prompt'] : body['input']) as CompletionRequest['prompt'];
  const single = typeof prompts === 'string' || typeof prompts[0] === 'number';
  return (single ? [prompts] : prompts) as (string | number[])[];
}

/**
 * Counts the prompt with the model's tokenizer: exact for plain text chats where the template is as configured, an upper bound where images are in it, and with `templateSlack` where tools
 * are. Infinity as soon as a part is longer than the context: no time is spent on the rest.
 */
export function countPrompt(ask: Ask, model: CatalogModel): PromptTokens {
  const counter = new Counter(model);
  if (ask.kind === 'chat') {
    for (const message of (ask.body as ChatCompletionRequest).messages) countMessage(counter, message);
    counter.add(model.templateTokens + mediaTokens(ask, model));
    countOtherFields(counter, ask.body);
    return { total: counter.tokens, longest: counter.tokens };
  }
  const parts = promptsOf(ask);
  let total = 0;
  let longest = 0;
  for (const part of parts) {
    const tokens = typeof part === 'string' ? countWithin(model.tokenizer, part, model.contextTokens) : part.length;
    total += tokens;
    longest = Math.max(longest, tokens);
  }
  countOtherFields(counter, ask.body);
  return { total: total + counter.tokens * parts.length, longest: longest + counter.tokens };
}

/** By how much a template may exceed our count: only for tools, which every template writes in its own way. What is held is the count and this; what is charged is without it. */
export function templateSlack({ kind, body }: Ask): number {
  if (kind !== 'chat') return 0;
  const { tools, functions } = body;
  const count = lengthOf(tools) + lengthOf(functions);
  return count === 0 ? 0 : TEMPLATE_TOKENS_OF_TOOLS + count * TEMPLATE_TOKENS_PER_TOOL;
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

/** No prompt of this form has fewer: what is known without counting. */
export function leastPromptTokens(ask: Ask, model: CatalogModel): number {
  return ask.kind === 'chat' ? ask.messages * model.templateTokensPerMessage + model.templateTokens : 0;
}

class Counter {
  tokens = 0;
  constructor(readonly model: CatalogModel) {}

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
    if (field !== 'content' || !Array.isArray(value)) {
      counter.text(value);
      continue;
    }
    for (const part of value as { type: string; text?: string }[]) {
      // What an image or a sound costs is not in its bytes: the model's maximum stands for it.
      if (part.type !== 'image_url' && part.type !== 'input_audio') counter.text(part.text ?? part);
    }
  }
}

function countOtherFields(counter: Counter, body: Record<string, unknown>): void {
  for (const field of ALSO_IN_PROMPT) counter.text(body[field]);
}
