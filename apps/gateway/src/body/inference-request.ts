import type { InferenceKind } from '@tollgate/contracts';
import { askedFor, InferenceError, unknownModel } from '../inference-errors';
import { affinityOf } from './affinity';
import { extraFields } from './extra-fields';
import { type Outgoing, toOutgoing } from './outgoing';
import { refuseRemoteReferences } from './schema-references';
import type { MediaType } from './message-schema';
import {
  hasDottedName,
  type Media,
  noMedia,
  refuseMedia,
  refuseStops,
  refuseUnsupported,
  rewriteMediaUrls,
} from './model-rules';
import type { BodyRules, PromptTokens } from './rules';
import {
  type ChatCompletionRequest,
  type CompletionRequest,
  DEFAULT_COMPLETION_TOKENS,
  type EmbeddingRequest,
  MAX_EMBEDDING_INPUTS,
} from './schemas';
import { largestTokenId } from './token-ids';
import { removeUnsent } from './unsent-members';
import { parseBody, REQUEST_FIELDS } from './parse-body';
import { refuseHugeVectors } from './vector-bytes';

/** A validated request, with all that the gateway needs to know about it. */
export interface InferenceRequest {
  readonly kind: InferenceKind;
  /** The validated body. Null if a worker has read it and counted its prompt. */
  readonly body: Record<string, unknown> | null;
  /** The part of the body for the backend. */
  readonly outgoing: Outgoing;
  /** The prompt's tokens, counted by the worker that read the body. Null: no worker has read it. */
  readonly counted: PromptTokens | null;
  /** The id or alias that the client used. */
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /**
   * The number of outputs, each of up to `maxTokens`: `n` for a chat, `n` times the prompts for a completion, and 0 for
   * embeddings.
   */
  readonly choices: number;
  /** Per choice. Null if the client sets no limit. */
  readonly maxTokens: number | null;
  /** The client set the limit itself. A lower one would shorten the answer below its request. */
  readonly maxTokensNamed: boolean;
  /** The field that sets `maxTokens`. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  readonly messages: number;
  /** The number of declared tools and functions. */
  readonly tools: number;
  /** A tool or a function has a name with a dot. Not every backend takes one. */
  readonly dottedNames: boolean;
  /** The number of stop sequences. */
  readonly stops: number;
  /** A backend generates it before it ends a choice, and does not deliver it. Empty: there is none. */
  readonly longestStop: string;
  /** The number of prompts of a completion or inputs of embeddings. 0 for a chat. */
  readonly prompts: number;
  /** Of the prompts that are token ids. Null: there are none. */
  readonly largestTokenId: number | null;
  readonly media: Media;
  /** The number of addresses of media that a backend is to fetch. */
  readonly remoteMedia: number;
  /** The answer must be JSON (`response_format`), so it cannot be cut. */
  readonly structuredOutput: boolean;
  /** The encoding of the vectors of embeddings. */
  readonly encodingFormat: 'float' | 'base64';
  /** See affinity.ts. */
  readonly affinity: number | null;
}

/**
 * Parses, validates and rebuilds a body. Throws InferenceError: 400 with the wrong field, or 404 for an unknown model.
 * @param findModel the model of this id, if the key may use it
 */
export function readRequest(
  kind: InferenceKind,
  raw: Buffer,
  findModel: (id: string) => BodyRules | undefined,
): InferenceRequest {
  const body = parseBody(kind, raw);
  try {
    return build(kind, body, findModel);
  } catch (error) {
    throw askedFor(error, body);
  }
}

function build(
  kind: InferenceKind,
  body: Record<string, unknown>,
  findModel: (id: string) => BodyRules | undefined,
): InferenceRequest {
  const reading = readByKind(kind, body);
  const id = body['model'] as string;
  const model = findModel(id);
  if (!model) throw unknownModel(id);
  checkModel(kind, reading, model);
  if (kind !== 'embedding') refuseStops(body as ChatCompletionRequest | CompletionRequest, model);
  if (kind === 'embedding') refuseHugeVectors(body, reading.prompts, model);
  if (kind === 'chat') refuseUnsupported(body as ChatCompletionRequest, model);
  const extras = extraFields(body, REQUEST_FIELDS[kind], model);
  const addresses = reading.media.image_url.count + reading.media.video_url.count;
  const remoteMedia = addresses > 0 ? rewriteMediaUrls(body as ChatCompletionRequest, model) : 0;
  const affinity = affinityOf(kind, body, model.routing);
  const found = { model: id, affinity, remoteMedia, largestTokenId: tokenIdOf(kind, body, model) };
  return { kind, body, outgoing: toOutgoing(kind, body, extras), counted: null, ...found, ...reading };
}

type Reading = Omit<
  InferenceRequest,
  'kind' | 'body' | 'outgoing' | 'counted' | 'model' | 'affinity' | 'remoteMedia' | 'largestTokenId'
>;

function tokenIdOf(kind: InferenceKind, body: Record<string, unknown>, model: BodyRules): number | null {
  if (kind === 'chat') return null;
  const param = kind === 'completion' ? 'prompt' : 'input';
  return largestTokenId(param, body[param] as CompletionRequest['prompt'], model);
}

const NO_OUTPUT: Reading = {
  stream: false,
  includeUsage: false,
  choices: 0,
  maxTokens: null,
  maxTokensNamed: false,
  maxTokensField: 'max_tokens',
  messages: 0,
  tools: 0,
  dottedNames: false,
  stops: 0,
  longestStop: '',
  prompts: 0,
  media: noMedia(),
  structuredOutput: false,
  encodingFormat: 'float',
};

function readByKind(kind: InferenceKind, body: Record<string, unknown>): Reading {
  switch (kind) {
    case 'chat':
      return readChat(body as ChatCompletionRequest);
    case 'completion':
      return readCompletion(body as CompletionRequest);
    case 'embedding':
      return readEmbedding(body as EmbeddingRequest);
  }
}

function checkModel(kind: InferenceKind, request: Reading, model: BodyRules): void {
  if (model.kind !== (kind === 'embedding' ? 'embedding' : 'chat'))
    throw new InferenceError('invalid_value', {
      param: 'model',
      message:
        model.kind === 'embedding'
          ? `The model '${model.id}' is an embedding model; it has no completions.`
          : `The model '${model.id}' is a chat model; it has no embeddings.`,
    });
  if (request.maxTokensNamed && request.maxTokens! > model.maxOutputTokens && !model.clamp) {
    const message = `'${request.maxTokensField}' must be at most ${model.maxOutputTokens} for the model '${model.id}'.`;
    throw new InferenceError('invalid_value', { param: request.maxTokensField, message });
  }
  refuseMedia(request.media, model);
}

function readChat(body: ChatCompletionRequest): Reading {
  const { max_tokens: older, max_completion_tokens: newer, response_format: format } = body;
  const media = noMedia();
  // Clients send 0 for none, which backends may refuse.
  if (body.top_logprobs === 0 && body.logprobs !== true) delete body.top_logprobs;
  if (body.top_logprobs != null && body.logprobs !== true) {
    const message = "'top_logprobs' is only allowed with 'logprobs': true.";
    throw new InferenceError('invalid_value', { message, param: 'top_logprobs' });
  }
  removeUnsent(body.messages);
  for (const [m, { role, content, tool_call_id: callId }] of body.messages.entries()) {
    if (role === 'tool' && callId == null) throw missing(`messages[${m}].tool_call_id`);
    if (!Array.isArray(content)) continue;
    for (const [p, part] of content.entries()) {
      checkPart(part, `messages[${m}].content[${p}]`);
      if (part.type === 'text' || part.type === 'refusal') continue;
      const parts = media[part.type satisfies MediaType];
      parts.count += 1;
      parts.param ??= `messages[${m}].content[${p}]`;
    }
  }
  for (const field of ['tools', 'functions', 'response_format'] as const) refuseRemoteReferences(body[field], field);
  for (const tool of body.tools ?? []) delete (tool as { cache_control?: unknown }).cache_control;
  const tools = (body.tools?.length ?? 0) + (body.functions?.length ?? 0);
  const type = (format as { type?: string } | null | undefined)?.type ?? 'text';
  return {
    ...readStreaming(body),
    choices: body.n ?? 1,
    maxTokens: older != null && newer != null ? Math.min(older, newer) : (older ?? newer ?? null),
    maxTokensNamed: older != null || newer != null,
    maxTokensField: newer == null ? 'max_tokens' : 'max_completion_tokens',
    messages: body.messages.length,
    tools,
    dottedNames: hasDottedName(body),
    ...stopsOf(body),
    prompts: 0,
    media,
    structuredOutput: type !== 'text',
    encodingFormat: 'float',
  };
}

function missing(param: string): InferenceError {
  return new InferenceError('missing_required_parameter', {
    message: `Missing required parameter: '${param}'.`,
    param,
  });
}

/** Checks that a part has the member that its `type` names, and no other. */
function checkPart(part: object, at: string): void {
  const { type } = part as { type: string };
  if (!Object.hasOwn(part, type)) throw missing(`${at}.${type}`);
  for (const member of Object.keys(part)) {
    if (member === 'type' || member === type) continue;
    // A hint of other APIs, without effect here.
    if (member === 'cache_control') {
      delete (part as { cache_control?: unknown }).cache_control;
      continue;
    }
    const param = `${at}.${member}`;
    const message = `'${param}' does not belong to a part of the type '${type}'.`;
    throw new InferenceError('unsupported_parameter', { message, param });
  }
}

function readCompletion(body: CompletionRequest): Reading {
  // An echoed prompt would be taken for output and charged.
  if (body.echo)
    throw new InferenceError('unsupported_parameter', { message: "'echo' is not supported.", param: 'echo' });
  const n = body.n ?? 1;
  if (body.best_of != null && body.best_of !== n) {
    const message = "'best_of' is not supported: it changes how much is generated.";
    throw new InferenceError('unsupported_parameter', { message, param: 'best_of' });
  }
  const prompts = checkPrompts('prompt', body.prompt);
  return {
    ...NO_OUTPUT,
    ...readStreaming(body),
    prompts,
    choices: prompts * n,
    maxTokens: body.max_tokens ?? DEFAULT_COMPLETION_TOKENS,
    maxTokensNamed: body.max_tokens != null,
    ...stopsOf(body),
  };
}

function stopsOf({ stop }: ChatCompletionRequest | CompletionRequest): Pick<Reading, 'stops' | 'longestStop'> {
  const all = typeof stop === 'string' ? [stop] : (stop ?? []);
  const longestStop = all.reduce((longest, one) => (one.length > longest.length ? one : longest), '');
  return { stops: all.length, longestStop };
}

function readEmbedding({ input, encoding_format: encodingFormat }: EmbeddingRequest): Reading {
  return { ...NO_OUTPUT, prompts: checkPrompts('input', input), encodingFormat: encodingFormat ?? 'float' };
}

function readStreaming(body: ChatCompletionRequest | CompletionRequest): Pick<Reading, 'stream' | 'includeUsage'> {
  const stream = body.stream === true;
  if (body.stream_options != null && !stream) {
    throw new InferenceError('invalid_value', {
      message: "'stream_options' is only allowed with 'stream'.",
      param: 'stream_options',
    });
  }
  return { stream, includeUsage: body.stream_options?.include_usage === true };
}

/**
 * The number of prompts: one for a string or a list of tokens, otherwise one per item. Throws InferenceError for a
 * mixture of tokens and texts, and for too many items.
 */
function checkPrompts(param: string, prompts: CompletionRequest['prompt']): number {
  if (typeof prompts === 'string' || prompts.every((item) => typeof item === 'number')) return 1;
  if (prompts.some((item) => typeof item === 'number')) {
    throw new InferenceError('invalid_type', { message: `'${param}' must not mix token ids and strings.`, param });
  }
  if (prompts.length > MAX_EMBEDDING_INPUTS) {
    throw new InferenceError('invalid_value', {
      message: `'${param}' must have at most ${MAX_EMBEDDING_INPUTS} items.`,
      param,
    });
  }
  return prompts.length;
}
