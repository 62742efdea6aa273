import type { CatalogModel } from '../catalog/catalog';
import { countWithin } from '../catalog/tokenizer';
import type { Ask } from './ask';
import type { ChatCompletionRequest, CompletionRequest } from './schemas';

/** What a chat template may put around a message, and around all of them, beyond what the body's own syntax already counts. */
const TEMPLATE_TOKENS_PER_MESSAGE = 8;
const TEMPLATE_TOKENS = 64;

/** OpenAI's documented formula: each message costs 3 tokens beside its texts, a name 1, and 3 begin the answer. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const TOKENS_OF_ANSWER_START = 3;

/** Fields beside messages and prompts that backends render into the prompt. */
const ALSO_IN_PROMPT = [
  'tools',
  'functions',
  'response_format',
  'suffix',
  'documents',
  'chat_template',
  'chat_template_kwargs',
];

/** Tokens of a prompt: of all its parts, and of the longest that must fit into the context by itself. */
export interface PromptTokens {
  total: number;
  longest: number;
}

/**
 * A sound upper bound without counting: every token is at least one byte of text, JSON escapes only lengthen, and each message has more syntax
 * in the body than a template adds. Costs nothing; about four times too high for English.
 */
export function cheapBound(ask: Ask, model: CatalogModel): number {
  return (
    ask.raw.length +
    TEMPLATE_TOKENS +
    ask.messages * TEMPLATE_TOKENS_PER_MESSAGE +
    ask.mediaParts * (model.maxMediaTokens ?? 0)
  );
}

/**
 * Counts the prompt with the model's tokenizer: exact for plain text chats by OpenAI's formula, an upper bound where images or tools are
 * in it. Infinity as soon as a part is longer than the context: no time is spent on the rest.
 */
export function countPrompt(ask: Ask, model: CatalogModel): PromptTokens {
  const counter = new Counter(model);
  if (ask.kind === 'chat') {
    for (const message of (ask.body as ChatCompletionRequest).messages) countMessage(counter, message);
    counter.add(TOKENS_OF_ANSWER_START + ask.mediaParts * (model.maxMediaTokens ?? 0));
    countOtherFields(counter, ask.body);
    return { total: counter.tokens, longest: counter.tokens };
  }
  const prompts = (ask.kind === 'completion' ? ask.body['prompt'] : ask.body['input']) as CompletionRequest['prompt'];
  const parts = typeof prompts === 'string' || typeof prompts[0] === 'number' ? [prompts] : prompts;
  let total = 0;
  let longest = 0;
  for (const part of parts as (string | number[])[]) {
    const tokens = typeof part === 'string' ? countWithin(model.tokenizer, part, model.contextTokens) : part.length;
    total += tokens;
    longest = Math.max(longest, tokens);
  }
  countOtherFields(counter, ask.body);
  return { total: total + counter.tokens * parts.length, longest: longest + counter.tokens };
}

/** No prompt of this form has fewer: what is known without counting. */
export function leastPromptTokens(ask: Ask): number {
  return ask.kind === 'chat' ? ask.messages * TOKENS_PER_MESSAGE + TOKENS_OF_ANSWER_START : 0;
}

class Counter {
  tokens = 0;
  constructor(private readonly model: CatalogModel) {}

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
  counter.add(TOKENS_PER_MESSAGE);
  for (const [field, value] of Object.entries(message)) {
    if (field === 'name' && value !== null) counter.add(TOKENS_PER_NAME);
    if (field !== 'content' || !Array.isArray(value)) {
      counter.text(value);
      continue;
    }
    for (const part of value as { type: string; text?: string }[]) {
      // What an image or a sound costs is not in its bytes: maxMediaTokens stands for it.
      if (part.type !== 'image_url' && part.type !== 'input_audio') counter.text(part.text ?? part);
    }
  }
}

function countOtherFields(counter: Counter, body: Record<string, unknown>): void {
  for (const field of ALSO_IN_PROMPT) counter.text(body[field]);
}
