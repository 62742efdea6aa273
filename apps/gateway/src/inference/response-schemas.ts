import { Type } from '@sinclair/typebox';

/**
 * The answers of the inference API, for the OpenAPI document. Tests compare the document with real answers. Backends
 * may add fields inside `choices`.
 */

const nullable = (type: string, options: Record<string, unknown> = {}) =>
  Type.Unsafe<unknown>({ type: [type, 'null'], ...options });
const id = (example: string) =>
  Type.String({ description: 'Assigned by Tollgate, not by the backend.', examples: [example] });
const created = Type.Integer({ description: 'Unix seconds.' });
const finishReason = nullable('string', {
  description: '`stop`, `length`, `tool_calls`, `content_filter`; null until the choice ends.',
});

export const Usage = Type.Object(
  {
    prompt_tokens: Type.Integer({ minimum: 0 }),
    completion_tokens: Type.Integer({ minimum: 0 }),
    total_tokens: Type.Integer({ minimum: 0 }),
    prompt_tokens_details: Type.Optional(
      nullable('object', {
        properties: { cached_tokens: { type: 'integer', minimum: 0 } },
        additionalProperties: { type: 'integer', minimum: 0 },
        description: 'Parts of the prompt tokens, as the model reports them.',
      }),
    ),
    completion_tokens_details: Type.Optional(
      nullable('object', {
        additionalProperties: { type: 'integer', minimum: 0 },
        description: 'Parts of the completion tokens, as the model reports them: `reasoning_tokens` and others.',
      }),
    ),
    cost: Type.Optional(
      Type.Number({
        minimum: 0,
        description:
          "What the request is charged, in units of the catalog's `pricing.currency`. For keys whose profile has " +
          '`usageCost`.',
        examples: [0.00001845],
      }),
    ),
  },
  { $id: 'Usage', title: 'Usage', description: 'The basis of metering. Embeddings have 0 completion tokens.' },
);

export const ChatCompletion = Type.Object(
  {
    id: id('chatcmpl-01k9x0w9q2e5v8m3t6r1b4n7ya'),
    object: Type.Literal('chat.completion'),
    created,
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer(),
        message: Type.Object({
          role: Type.Literal('assistant'),
          content: Type.Optional(nullable('string')),
          tool_calls: Type.Optional(nullable('array', { items: { type: 'object' } })),
        }),
        finish_reason: finishReason,
        logprobs: Type.Optional(nullable('object')),
      }),
    ),
    usage: Usage,
  },
  { $id: 'ChatCompletion', title: 'Chat completion' },
);

export const ChatCompletionChunk = Type.Object(
  {
    id: id('chatcmpl-01k9x0w9q2e5v8m3t6r1b4n7ya'),
    object: Type.Literal('chat.completion.chunk'),
    created,
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer(),
        delta: Type.Object({
          role: Type.Optional(Type.String()),
          content: Type.Optional(nullable('string')),
          tool_calls: Type.Optional(nullable('array', { items: { type: 'object' } })),
        }),
        finish_reason: Type.Optional(finishReason),
      }),
    ),
    usage: Type.Optional(Type.Union([Usage, Type.Null()])),
  },
  { $id: 'ChatCompletionChunk', title: 'Chat completion chunk', description: 'The `data:` of one server-sent event.' },
);

export const TextCompletion = Type.Object(
  {
    id: id('cmpl-01k9x0w9q2e5v8m3t6r1b4n7ya'),
    object: Type.Literal('text_completion'),
    created,
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer(),
        text: Type.String(),
        finish_reason: Type.Optional(finishReason),
        logprobs: Type.Optional(nullable('object')),
      }),
    ),
    usage: Type.Optional(Type.Union([Usage, Type.Null()])),
  },
  {
    $id: 'TextCompletion',
    title: 'Text completion',
    description: 'Also the `data:` of a streamed event. Only the last chunk has `usage`.',
  },
);

export const EmbeddingList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(
      Type.Object({
        object: Type.Literal('embedding'),
        index: Type.Integer(),
        embedding: Type.Unsafe<number[] | string>({
          type: ['array', 'string'],
          items: { type: 'number' },
          description: 'Numbers, or base64 of little-endian float32.',
        }),
      }),
    ),
    model: Type.String(),
    usage: Usage,
  },
  { $id: 'EmbeddingList', title: 'Embeddings' },
);

export const Model = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('model'),
    created,
    owned_by: Type.String(),
    context_length: Type.Integer({ description: 'The tokens of a prompt and its answer together, at most.' }),
    max_model_len: Type.Integer({ description: 'The same as `context_length`.' }),
    pricing: Type.Object(
      {
        currency: Type.String({ description: 'ISO 4217' }),
        prompt: Type.String(),
        input_cache_read: Type.String(),
        completion: Type.String(),
        request: Type.String(),
      },
      { description: 'Decimal amounts: for one token of each kind, and for a request.' },
    ),
  },
  { $id: 'Model', title: 'Model', description: '`id` is the value to pass as `model`.' },
);

export const ModelList = Type.Object(
  { object: Type.Literal('list'), data: Type.Array(Model) },
  { $id: 'ModelList', title: 'Models', description: 'The models that the key may use.' },
);

export const InferenceErrorBody = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: nullable('string'),
      code: nullable('string'),
    }),
  },
  { $id: 'InferenceError', title: 'Error' },
);
