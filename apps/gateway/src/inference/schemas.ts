import { type Static, type TSchema, Type } from '@sinclair/typebox';

/**
 * The bodies of the inference requests: what is validated and what the OpenAPI document shows, from one definition. Fields that are not named
 * here are passed to the model's backend untouched. Unions are written as lists of types, not `anyOf`, so that an error names one field and one reason.
 */

export const MAX_CHOICES = 16;
export const MAX_STOP_SEQUENCES = 4;
export const MAX_MESSAGES = 100_000;
export const MAX_EMBEDDING_INPUTS = 2_048;
export const MAX_TOP_LOGPROBS = 20;
/** What a legacy completion is asked for when it names no `max_tokens`, as the well-known API does. */
export const DEFAULT_COMPLETION_TOKENS = 16;

export const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
export const TOOL_CHOICES = ['none', 'auto', 'required'] as const;
export const RESPONSE_FORMATS = ['text', 'json_object', 'json_schema'] as const;
export const PART_TYPES = ['text', 'image_url', 'input_audio', 'refusal'] as const;

/** A field that may be left out or null, which is the same. */
const optional = <T>(type: string, options: Record<string, unknown>) =>
  Type.Optional(Type.Unsafe<T | null>({ type: [type, 'null'], ...options }));

const maxTokens = optional<number>('integer', {
  minimum: 1,
  description:
    'Largest number of output tokens per choice. Absent: as many as the model, the context and the credit allow.',
});

const sampling = {
  temperature: optional<number>('number', { minimum: 0, maximum: 2, description: 'Sampling temperature.' }),
  top_p: optional<number>('number', { minimum: 0, maximum: 1, description: 'Nucleus sampling.' }),
  n: optional<number>('integer', {
    minimum: 1,
    maximum: MAX_CHOICES,
    description: 'Number of choices; each is charged.',
  }),
  stop: Type.Optional(
    Type.Unsafe<string | string[] | null>({
      type: ['string', 'array', 'null'],
      items: { type: 'string' },
      maxItems: MAX_STOP_SEQUENCES,
      description: `Ends the output: a string, or up to ${MAX_STOP_SEQUENCES}.`,
    }),
  ),
  stream: optional<boolean>('boolean', { description: 'Answer with server-sent events that end with `data: [DONE]`.' }),
  stream_options: Type.Optional(
    Type.Unsafe<{ include_usage?: boolean | null } | null>({
      type: ['object', 'null'],
      properties: {
        include_usage: {
          type: ['boolean', 'null'],
          description:
            'Usage comes as a last chunk of its own with empty `choices`; otherwise it is on the chunk with the last `finish_reason`.',
        },
      },
      description: 'Only with `stream`.',
    }),
  ),
  frequency_penalty: optional<number>('number', { minimum: -2, maximum: 2 }),
  presence_penalty: optional<number>('number', { minimum: -2, maximum: 2 }),
  seed: optional<number>('integer', { description: 'Passed to the model.' }),
  logit_bias: optional<Record<string, number>>('object', {
    additionalProperties: { type: 'number', minimum: -100, maximum: 100 },
  }),
  user: optional<string>('string', { description: 'Your identifier of the end user; passed to the model.' }),
};

const ContentPart = Type.Object(
  {
    type: Type.Unsafe<(typeof PART_TYPES)[number]>({ type: 'string', enum: PART_TYPES }),
    text: Type.Optional(Type.String()),
    image_url: Type.Optional(
      Type.Unsafe<object>({ type: 'object', required: ['url'], properties: { url: { type: 'string' } } }),
    ),
    input_audio: Type.Optional(Type.Unsafe<object>({ type: 'object' })),
  },
  {
    title: 'Content part',
    description: 'Images and audio only where the model takes them; each is held at the most that one can cost.',
  },
);

const Message = Type.Object(
  {
    role: Type.Unsafe<(typeof ROLES)[number]>({ type: 'string', enum: ROLES }),
    content: Type.Optional(
      Type.Unsafe<string | Static<typeof ContentPart>[] | null>({
        type: ['string', 'array', 'null'],
        minItems: 1,
        items: ContentPart,
        description: 'Text, or parts. May be left out or null only for the role `assistant`.',
      }),
    ),
    name: optional<string>('string', {}),
    tool_calls: optional<object[]>('array', { items: { type: 'object' } }),
    tool_call_id: optional<string>('string', {}),
  },
  {
    title: 'Message',
    if: { properties: { role: { const: 'assistant' } } },
    else: { required: ['content'], properties: { content: { type: ['string', 'array'] } } },
  },
);

const TOOL_NAME = { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' };

/** A function is checked as far as its name; other kinds of tools are the backend's to judge. */
const Tool = {
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string' } },
  if: { required: ['type'], properties: { type: { const: 'function' } } },
  then: {
    required: ['function'],
    properties: {
      function: {
        type: 'object',
        required: ['name'],
        properties: {
          name: TOOL_NAME,
          description: { type: ['string', 'null'] },
          parameters: { type: ['object', 'null'] },
          strict: { type: ['boolean', 'null'] },
        },
      },
    },
  },
};

const model = Type.String({ minLength: 1, maxLength: 256, description: 'An id of `GET /models`.' });

export const ChatCompletionRequest = Type.Object(
  {
    model,
    messages: Type.Array(Message, { minItems: 1, maxItems: MAX_MESSAGES }),
    ...sampling,
    max_tokens: maxTokens,
    max_completion_tokens: optional<number>('integer', {
      minimum: 1,
      description: 'The newer name of `max_tokens`; the smaller counts when both are given.',
    }),
    logprobs: optional<boolean>('boolean', {}),
    top_logprobs: optional<number>('integer', { minimum: 0, maximum: MAX_TOP_LOGPROBS }),
    tools: optional<object[]>('array', { items: Tool }),
    tool_choice: Type.Optional(
      Type.Unsafe<string | object | null>({
        type: ['string', 'object', 'null'],
        required: ['type'],
        properties: { type: { type: 'string' } },
        if: { type: 'string' },
        then: { enum: TOOL_CHOICES },
        description: `One of ${TOOL_CHOICES.join(', ')}, or the tool that is to be called.`,
      }),
    ),
    parallel_tool_calls: optional<boolean>('boolean', {}),
    response_format: optional<object>('object', {
      required: ['type'],
      properties: { type: { type: 'string', enum: RESPONSE_FORMATS } },
      if: { required: ['type'], properties: { type: { const: 'json_schema' } } },
      then: {
        required: ['json_schema'],
        properties: { json_schema: { type: 'object', required: ['name'], properties: { name: TOOL_NAME } } },
      },
      description: 'Structured output, where the model has it.',
    }),
  },
  { $id: 'ChatCompletionRequest', title: 'Chat completion request' },
);

const PROMPT_ITEM = {
  type: ['string', 'integer', 'array'],
  minimum: 0,
  minItems: 1,
  items: { type: 'integer', minimum: 0 },
};
const PROMPT: TSchema = {
  type: ['string', 'array'],
  minItems: 1,
  maxItems: MAX_EMBEDDING_INPUTS * 64,
  items: PROMPT_ITEM,
} as unknown as TSchema;
type Prompt = string | (string | number | number[])[];

export const CompletionRequest = Type.Object(
  {
    model,
    prompt: Type.Unsafe<Prompt>({
      ...PROMPT,
      description: 'A string, strings, tokens, or lists of tokens; every prompt is answered with `n` choices.',
    }),
    ...sampling,
    max_tokens: optional<number>('integer', {
      minimum: 1,
      default: DEFAULT_COMPLETION_TOKENS,
      description: 'Largest number of output tokens per choice.',
    }),
    logprobs: optional<number>('integer', { minimum: 0, maximum: 5 }),
    echo: optional<boolean>('boolean', { description: 'Not supported: `true` is refused.' }),
    best_of: optional<number>('integer', {
      minimum: 1,
      maximum: MAX_CHOICES,
      description: 'Candidates generated; each is charged.',
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
      // Unlike a prompt: of nothing there is no vector.
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
