import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { COMMON_STOP_SEQUENCES, MAX_STOP_SEQUENCES } from '@tollgate/contracts';
import { MAX_MODEL_ID_CHARS } from '../inference-errors';
import { Message } from './message-schema';
import { NAME, only, optional, TEXT_OR_NULL, TOOL_NAME } from './schema-builders';
import { MAX_ITEMS } from './structure';
import { FUNCTION, MAX_TOOLS, TOOL, TOOL_CHOICE } from './tool-schemas';

/**
 * The schemas of the inference requests' bodies. Validation, the body for the backend (`outgoing.ts`) and the OpenAPI
 * document use the same definition. Messages, parts and tools have no other members. For other fields of the body
 * itself see `extra-fields.ts`.
 */

const MAX_CHOICES = 16;
const MAX_MESSAGES = 20_000;
const MAX_LOGIT_BIASES = 1_024;
const MAX_STOP_CHARS = 4_096;
export const MAX_EMBEDDING_INPUTS = 2_048;
export const MAX_TOP_LOGPROBS = 20;
/** The default `max_tokens` of a legacy completion, as in OpenAI's API. */
export const DEFAULT_COMPLETION_TOKENS = 16;

const RESPONSE_FORMATS = ['text', 'json_object', 'json_schema'] as const;

const maxTokens = optional<number>('integer', {
  minimum: 1,
  description:
    'Largest number of output tokens per choice. By default as many as the model, the context and the credit allow.',
});

const sampling = {
  temperature: optional<number>('number', { minimum: 0, maximum: 2, description: 'Sampling temperature.' }),
  top_p: optional<number>('number', { minimum: 0, maximum: 1, description: 'Nucleus sampling.' }),
  n: optional<number>('integer', {
    minimum: 1,
    maximum: MAX_CHOICES,
    description: 'Number of choices. Each is charged.',
  }),
  stop: Type.Optional(
    Type.Unsafe<string | string[] | null>({
      type: ['string', 'array', 'null'],
      maxLength: MAX_STOP_CHARS,
      items: { type: 'string', maxLength: MAX_STOP_CHARS },
      maxItems: MAX_STOP_SEQUENCES,
      description:
        `A string that ends the output, or up to ${COMMON_STOP_SEQUENCES} of them. ` +
        `Some models take up to ${MAX_STOP_SEQUENCES}.`,
    }),
  ),
  stream: optional<boolean>('boolean', { description: 'Answer with server-sent events that end with `data: [DONE]`.' }),
  stream_options: Type.Optional(
    Type.Unsafe<{ include_usage?: boolean | null } | null>({
      type: ['object', 'null'],
      additionalProperties: false,
      properties: {
        include_obfuscation: { type: ['boolean', 'null'], description: 'Accepted without effect.' },
        continuous_usage_stats: { type: ['boolean', 'null'], description: 'Accepted without effect.' },
        include_usage: {
          type: ['boolean', 'null'],
          description:
            'Sends usage as a separate last chunk with empty `choices`. Otherwise the chunk with the last ' +
            '`finish_reason` has it.',
        },
      },
      description: 'Only with `stream`.',
    }),
  ),
  frequency_penalty: optional<number>('number', { minimum: -2, maximum: 2 }),
  presence_penalty: optional<number>('number', { minimum: -2, maximum: 2 }),
  seed: optional<number>('integer', {
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Passed to the model.',
  }),
  logit_bias: optional<Record<string, number>>('object', {
    maxProperties: MAX_LOGIT_BIASES,
    propertyNames: { pattern: '^[0-9]{1,9}$' },
    additionalProperties: { type: 'number', minimum: -100, maximum: 100 },
  }),
  user: optional<string>('string', { description: 'Your identifier of the end user. Passed to the model.' }),
};

const model = Type.String({ minLength: 1, maxLength: MAX_MODEL_ID_CHARS, description: 'An id of `GET /models`.' });

export const ChatCompletionRequest = Type.Object(
  {
    model,
    messages: Type.Array(Message, { minItems: 1, maxItems: MAX_MESSAGES }),
    ...sampling,
    max_tokens: maxTokens,
    max_completion_tokens: optional<number>('integer', {
      minimum: 1,
      description: 'The newer name of `max_tokens`. If both are given, the smaller one counts.',
    }),
    logprobs: optional<boolean>('boolean', {}),
    top_logprobs: optional<number>('integer', {
      minimum: 0,
      maximum: MAX_TOP_LOGPROBS,
      description: 'Only with `logprobs`: otherwise it must be 0, which is not passed on.',
    }),
    tools: optional<object[]>('array', { maxItems: MAX_TOOLS, items: TOOL }),
    tool_choice: Type.Optional(Type.Unsafe<string | object | null>(TOOL_CHOICE)),
    functions: optional<object[]>('array', {
      maxItems: MAX_TOOLS,
      items: FUNCTION,
      description: 'The older form of `tools`.',
    }),
    function_call: Type.Optional(
      Type.Unsafe<string | object | null>({
        ...only({ name: TOOL_NAME }, ['name']),
        type: ['string', 'object', 'null'],
        if: { type: 'string' },
        then: { enum: ['none', 'auto'] },
        description: 'The older form of `tool_choice`.',
      }),
    ),
    parallel_tool_calls: optional<boolean>('boolean', {}),
    response_format: optional<object>('object', {
      required: ['type'],
      additionalProperties: false,
      properties: {
        type: { type: 'string', enum: RESPONSE_FORMATS },
        json_schema: { type: ['object', 'null'] },
        schema: { type: ['object', 'null'], description: 'With `json_object`, if the backend supports it.' },
      },
      if: { required: ['type'], properties: { type: { const: 'json_schema' } } },
      then: {
        required: ['json_schema'],
        properties: {
          json_schema: only(
            {
              name: NAME,
              description: TEXT_OR_NULL,
              schema: { type: ['object', 'null'] },
              strict: { type: ['boolean', 'null'] },
            },
            ['name'],
          ),
        },
      },
      description: 'Structured output, if the model supports it.',
    }),
  },
  { $id: 'ChatCompletionRequest', title: 'Chat completion request' },
);

const TOKEN_ID = { minimum: 0, maximum: 2 ** 31 - 1 };
const PROMPT_ITEM = {
  type: ['string', 'integer', 'array'],
  ...TOKEN_ID,
  minItems: 1,
  items: { type: 'integer', ...TOKEN_ID },
};
const PROMPT: TSchema = {
  type: ['string', 'array'],
  minItems: 1,
  // A list of token ids. Texts and lists are at most MAX_EMBEDDING_INPUTS (inference-request.ts).
  maxItems: MAX_ITEMS,
  items: PROMPT_ITEM,
} as unknown as TSchema;
type Prompt = string | (string | number | number[])[];

export const CompletionRequest = Type.Object(
  {
    model,
    prompt: Type.Unsafe<Prompt>({
      ...PROMPT,
      description: 'A string, strings, tokens, or lists of tokens. Each prompt gets `n` choices.',
    }),
    ...sampling,
    max_tokens: optional<number>('integer', {
      minimum: 1,
      default: DEFAULT_COMPLETION_TOKENS,
      description: 'Largest number of output tokens per choice.',
    }),
    logprobs: optional<number>('integer', { minimum: 0, maximum: 5 }),
    echo: optional<boolean>('boolean', { description: 'Not supported. `true` is refused.' }),
    best_of: optional<number>('integer', {
      minimum: 1,
      maximum: MAX_CHOICES,
      description: 'Not supported. Any value other than that of `n` is refused.',
    }),
    suffix: optional<string>('string', {}),
  },
  { $id: 'CompletionRequest', title: 'Legacy completion request' },
);

export const EmbeddingRequest = Type.Object(
  {
    model,
    input: Type.Unsafe<Prompt>({
      ...PROMPT,
      // Unlike a prompt, an input must not be empty: it would have no vector.
      minLength: 1,
      items: { ...PROMPT_ITEM, minLength: 1 },
      description: `A string, up to ${MAX_EMBEDDING_INPUTS} strings, tokens, or lists of tokens.`,
    }),
    encoding_format: optional<'float' | 'base64'>('string', { enum: ['float', 'base64', null] }),
    dimensions: optional<number>('integer', { minimum: 1 }),
    user: optional<string>('string', {}),
  },
  { $id: 'EmbeddingRequest', title: 'Embedding request' },
);

export type ChatCompletionRequest = Static<typeof ChatCompletionRequest>;
export type CompletionRequest = Static<typeof CompletionRequest>;
export type EmbeddingRequest = Static<typeof EmbeddingRequest>;
