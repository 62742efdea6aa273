import type { InferenceKind } from '@tollgate/contracts';
import { InferenceError } from './errors';
import {
  type ChatCompletionRequest,
  type CompletionRequest,
  DEFAULT_COMPLETION_TOKENS,
  type EmbeddingRequest,
  MAX_EMBEDDING_INPUTS,
} from './schemas';
import { parseBody } from './validate';

/** What a request asks for, as far as it matters to anyone but the model. */
export interface Ask {
  kind: InferenceKind;
  body: Record<string, unknown>;
  /** The body as it came, to be passed on with few changes. */
  raw: Buffer;
  model: string;
  stream: boolean;
  includeUsage: boolean;
  /** Outputs that are generated, each of up to `maxTokens`: `n` (or `best_of`) times prompts. 0 for embeddings. */
  choices: number;
  /** Per choice; null when the client leaves it open. */
  maxTokens: number | null;
  /** The client named it: less would be a shorter answer than it asked for. */
  maxTokensNamed: boolean;
  /** The field that the client names it by. */
  maxTokensField: 'max_tokens' | 'max_completion_tokens';
  messages: number;
  images: MediaParts;
  audio: MediaParts;
}

/** How many parts of a kind there are, and where the first one is. */
export interface MediaParts {
  count: number;
  param: string | null;
}

/** Parses and validates a body. Throws InferenceError 400. */
export function readAsk(kind: InferenceKind, raw: Buffer): Ask {
  const body = parseBody(kind, raw);
  const common = { kind, body, raw, model: body['model'] as string };
  switch (kind) {
    case 'chat':
      return { ...common, ...readChat(body as ChatCompletionRequest) };
    case 'completion':
      return { ...common, ...readCompletion(body as CompletionRequest) };
    case 'embedding':
      checkPrompts('input', (body as EmbeddingRequest).input);
      return { ...common, ...NO_OUTPUT };
  }
}

type Rest = Omit<Ask, 'kind' | 'body' | 'raw' | 'model'>;

const NO_OUTPUT: Rest = {
  stream: false,
  includeUsage: false,
  choices: 0,
  maxTokens: null,
  maxTokensNamed: false,
  maxTokensField: 'max_tokens',
  messages: 0,
  images: { count: 0, param: null },
  audio: { count: 0, param: null },
};

function readChat(body: ChatCompletionRequest): Rest {
  const { max_tokens: older, max_completion_tokens: newer } = body;
  const images: MediaParts = { count: 0, param: null };
  const audio: MediaParts = { count: 0, param: null };
  for (const [m, { content }] of body.messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [p, part] of content.entries()) {
      if (part.type === 'text' && part.text === undefined) {
        const param = `messages[${m}].content[${p}].text`;
        throw new InferenceError('missing_required_parameter', {
          message: `Missing required parameter: '${param}'.`,
          param,
        });
      }
      if (part.type !== 'image_url' && part.type !== 'input_audio') continue;
      const parts = part.type === 'image_url' ? images : audio;
      parts.count += 1;
      parts.param ??= `messages[${m}].content[${p}]`;
    }
  }
  return {
    ...readStreaming(body),
    choices: body.n ?? 1,
    maxTokens: older != null && newer != null ? Math.min(older, newer) : (older ?? newer ?? null),
    maxTokensNamed: older != null || newer != null,
    maxTokensField: newer == null ? 'max_tokens' : 'max_completion_tokens',
    messages: body.messages.length,
    images,
    audio,
  };
}

function readCompletion(body: CompletionRequest): Rest {
  // The prompt in the answer would be taken for output, and charged as such.
  if (body.echo)
    throw new InferenceError('unsupported_parameter', { message: "'echo' is not supported.", param: 'echo' });
  const n = body.n ?? 1;
  const bestOf = body.best_of ?? n;
  if (bestOf < n)
    throw new InferenceError('invalid_value', { message: "'best_of' must be at least 'n'.", param: 'best_of' });
  if (bestOf > n && body.stream)
    throw new InferenceError('invalid_value', { message: "'best_of' above 'n' cannot be streamed.", param: 'best_of' });
  return {
    ...NO_OUTPUT,
    ...readStreaming(body),
    choices: checkPrompts('prompt', body.prompt) * bestOf,
    maxTokens: body.max_tokens ?? DEFAULT_COMPLETION_TOKENS,
    maxTokensNamed: body.max_tokens != null,
  };
}

function readStreaming(body: ChatCompletionRequest | CompletionRequest): Pick<Rest, 'stream' | 'includeUsage'> {
  const stream = body.stream === true;
  if (body.stream_options != null && !stream) {
    throw new InferenceError('invalid_value', {
      message: "'stream_options' is only allowed with 'stream'.",
      param: 'stream_options',
    });
  }
  return { stream, includeUsage: body.stream_options?.include_usage === true };
}

/** How many prompts there are: one string or list of tokens, or several of them. Throws for a mixture, and for too many. */
function checkPrompts(param: string, prompts: CompletionRequest['prompt']): number {
  if (typeof prompts === 'string' || prompts.every((item) => typeof item === 'number')) return 1;
  if (prompts.some((item) => typeof item === 'number')) {
    throw new InferenceError('invalid_type', { message: `'${param}' must not mix tokens with texts.`, param });
  }
  if (prompts.length > MAX_EMBEDDING_INPUTS) {
    throw new InferenceError('invalid_value', {
      message: `'${param}' must NOT have more than ${MAX_EMBEDDING_INPUTS} items.`,
      param,
    });
  }
  return prompts.length;
}
