import { type Static, type TSchema, Type } from '@sinclair/typebox';

/**
 * The bodies of the inference requests: what is validated, what goes out (`outgoing.ts` takes the fields of these
 * schemas), and what the OpenAPI document shows, from one definition. Inside of messages, parts and tools nothing else
 * is taken; other fields of the body itself only as `extra-fields.ts` says. Unions are written as lists of types, not
 * `anyOf`, so that an error names one field and one reason.
 */

export const MAX_CHOICES = 16;
export const MAX_STOP_SEQUENCES = 4;
export const MAX_MESSAGES = 20_000;
export const MAX_CONTENT_PARTS = 4_096;
export const MAX_TOOLS = 1_024;
const MAX_LOGIT_BIASES = 1_024;
const MAX_STOP_CHARS = 4_096;
export const MAX_EMBEDDING_INPUTS = 2_048;
export const MAX_TOP_LOGPROBS = 20;
/** What a legacy completion is asked for when it names no `max_tokens`, as the well-known API does. */
export const DEFAULT_COMPLETION_TOKENS = 16;

export const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
export const TOOL_CHOICES = ['none', 'auto', 'required'] as const;
export const TOOL_TYPES = ['function', 'custom'] as const;
export const RESPONSE_FORMATS = ['text', 'json_object', 'json_schema'] as const;
export const PART_TYPES = ['text', 'image_url', 'input_audio', 'refusal'] as const;

/** A field that may be left out or null, which is the same. */
const optional = <T>(type: string, options: Record<string, unknown>) =>
  Type.Optional(Type.Unsafe<T | null>({ type: [type, 'null'], ...options }));

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
      description: `Ends the output: a string, or up to ${MAX_STOP_SEQUENCES}.`,
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
            'Sends usage as a separate last chunk with empty `choices`. Otherwise the chunk with the last `finish_reason` has it.',
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

/** An object with these members and no other. */
const only = (properties: Record<string, unknown>, required: string[] = []) => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties,
});
const text = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };
/** Base64, also as a `data:` URL: nothing that a backend could fetch. */
const AUDIO_DATA = { type: 'string', pattern: '^(data:audio/[a-z0-9.+-]{1,32};base64,)?[A-Za-z0-9+/]*={0,2}$' };

const ContentPart = Type.Object(
  {
    type: Type.Unsafe<(typeof PART_TYPES)[number]>({ type: 'string', enum: PART_TYPES }),
    text: Type.Optional(Type.String()),
    cache_control: Type.Optional(Type.Unknown({ description: 'Accepted without effect.' })),
    refusal: Type.Optional(Type.String()),
    image_url: Type.Optional(
      Type.Unsafe<{ url: string; detail?: string | null }>(
        only({ url: text, detail: { type: ['string', 'null'], enum: ['auto', 'low', 'high', null] } }, ['url']),
      ),
    ),
    input_audio: Type.Optional(
      Type.Unsafe<{ data: string; format?: string }>(
        only({ data: AUDIO_DATA, format: { type: 'string', pattern: '^[a-z0-9]{1,16}$' } }, ['data']),
      ),
    ),
  },
  {
    additionalProperties: false,
    title: 'Content part',
    description:
      'The member that `type` names, and no other. Images and audio only where the model takes them; each is held at the most that one can cost. An image is a `data:` URL, or an `https:` one where ' +
      'the model fetches from its domain.',
  },
);

const NAME = { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' };
const CALLED_FUNCTION = only({ name: text, arguments: text }, ['name']);

/** Members of earlier answers that clients send back as they got them, and that no backend is sent. */
export const NOT_PASSED_ON_IN_MESSAGES = [
  'annotations',
  'audio',
  'id',
  'parsed',
  'provider_specific_fields',
  'reasoning_details',
  'stop_reason',
  'thinking',
  'thinking_blocks',
] as const;
const NOT_PASSED_ON = Object.fromEntries(
  NOT_PASSED_ON_IN_MESSAGES.map((name) => [
    name,
    Type.Optional(Type.Unknown({ description: 'From an earlier answer. Not passed on.' })),
  ]),
);

const Message = Type.Object(
  {
    role: Type.Unsafe<(typeof ROLES)[number]>({ type: 'string', enum: ROLES }),
    content: Type.Optional(
      Type.Unsafe<string | Static<typeof ContentPart>[] | null>({
        type: ['string', 'array', 'null'],
        minItems: 1,
        maxItems: MAX_CONTENT_PARTS,
        items: ContentPart,
        description: 'Text or parts. Only the role `assistant` may omit it or set it to null.',
      }),
    ),
    name: optional<string>('string', {}),
    tool_calls: optional<object[]>('array', {
      maxItems: MAX_TOOLS,
      items: only({
        id: textOrNull,
        type: { type: 'string', enum: TOOL_TYPES },
        index: { type: ['integer', 'null'] },
        function: CALLED_FUNCTION,
        custom: only({ name: text, input: text }, ['name']),
      }),
    }),
    tool_call_id: optional<string>('string', {}),
    refusal: optional<string>('string', {}),
    function_call: optional<object>('object', { ...CALLED_FUNCTION, type: ['object', 'null'] }),
    reasoning_content: optional<string>('string', {
      description: 'From an earlier answer, for templates that show it.',
    }),
    reasoning: optional<string>('string', { description: 'As `reasoning_content`.' }),
    ...NOT_PASSED_ON,
  },
  {
    additionalProperties: false,
    title: 'Message',
    if: { properties: { role: { const: 'assistant' } } },
    else: { required: ['content'], properties: { content: { type: ['string', 'array'] } } },
  },
);

const FUNCTION = only(
  {
    name: NAME,
    description: textOrNull,
    parameters: { type: ['object', 'null'] },
    strict: { type: ['boolean', 'null'] },
  },
  ['name'],
);

const Tool = {
  ...only(
    {
      type: { type: 'string', enum: TOOL_TYPES },
      cache_control: { description: 'Accepted without effect.' },
      function: FUNCTION,
      custom: only({ name: NAME, description: textOrNull, format: { type: ['object', 'null'] } }, ['name']),
    },
    ['type'],
  ),
  if: { required: ['type'], properties: { type: { const: 'function' } } },
  then: { required: ['function'] },
  else: {
    if: { required: ['type'], properties: { type: { const: 'custom' } } },
    then: { required: ['custom'] },
  },
};

const TOOL_CHOICE = {
  ...only(
    { type: { type: 'string', enum: TOOL_TYPES }, function: only({ name: NAME }), custom: only({ name: NAME }) },
    ['type'],
  ),
  type: ['string', 'object', 'null'],
  if: { type: 'string' },
  then: { enum: TOOL_CHOICES },
  description: `One of ${TOOL_CHOICES.join(', ')}, or the tool to call.`,
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
      description: 'The newer name of `max_tokens`. If both are given, the smaller one counts.',
    }),
    logprobs: optional<boolean>('boolean', {}),
    top_logprobs: optional<number>('integer', { minimum: 0, maximum: MAX_TOP_LOGPROBS }),
    tools: optional<object[]>('array', { maxItems: MAX_TOOLS, items: Tool }),
    tool_choice: Type.Optional(Type.Unsafe<string | object | null>(TOOL_CHOICE)),
    functions: optional<object[]>('array', {
      maxItems: MAX_TOOLS,
      items: FUNCTION,
      description: 'The older form of `tools`.',
    }),
    function_call: Type.Optional(
      Type.Unsafe<string | object | null>({
        ...only({ name: NAME }, ['name']),
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
              description: textOrNull,
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
  maxItems: MAX_EMBEDDING_INPUTS * 64,
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
