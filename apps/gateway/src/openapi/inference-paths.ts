import type { TSchema } from '@sinclair/typebox';
import { INFERENCE_ERRORS, type InferenceErrorCode } from '../inference/errors';
import * as requests from '../inference/body/schemas';
import * as answers from '../inference/response-schemas';
import { type JsonObject, namedSchemas, ref, refTo } from './open-api';
import { errorResponses, jsonResponse, type DocumentedErrors } from './responses';

/** Every schema of the inference API that has a name. */
export const INFERENCE_SCHEMAS = namedSchemas(requests, answers);

const ERRORS: DocumentedErrors = {
  table: INFERENCE_ERRORS,
  schema: refTo(answers.InferenceErrorBody),
  body(code) {
    const { type, message } = INFERENCE_ERRORS[code as InferenceErrorCode];
    return { error: { message, type, param: code === 'model_not_found' ? 'model' : null, code } };
  },
};

/** What only a request without a route, or with another method, meets. */
const NOT_OF_A_ROUTE: InferenceErrorCode[] = ['route_not_found', 'method_not_allowed'];
const OF_INFERENCE = (Object.keys(INFERENCE_ERRORS) as InferenceErrorCode[]).filter(
  (code) => !NOT_OF_A_ROUTE.includes(code),
);
const OF_MODELS: InferenceErrorCode[] = ['missing_api_key', 'invalid_api_key', 'api_error', 'overloaded_error'];

const RATE_HEADERS = Object.fromEntries(
  ['limit', 'remaining', 'reset'].flatMap((what) =>
    ['requests', 'tokens'].map((unit) => [`x-ratelimit-${what}-${unit}`, ref('headers', `RateLimit-${what}`)]),
  ),
);

interface Endpoint {
  id: string;
  summary: string;
  description: string;
  request: TSchema;
  examples: JsonObject;
  answer: TSchema;
  /** The form of each event's data when it streams. */
  event?: TSchema;
  eventExample?: string;
}

function operation({ id, summary, description, request, examples, answer, event, eventExample }: Endpoint): JsonObject {
  const success = jsonResponse('The answer.', refTo(answer), RATE_HEADERS);
  return {
    operationId: id,
    tags: ['Inference API'],
    summary,
    description,
    security: [{ inferenceKey: [] }],
    requestBody: { required: true, content: { 'application/json': { schema: refTo(request), examples } } },
    responses: {
      '200': event
        ? {
            ...success,
            description:
              'The answer; with `stream: true` server-sent events. The data of each is one JSON object of the form shown; the last is ' +
              '`data: [DONE]`. An error after the first byte is one event `data: {"error": …}`, then `data: [DONE]`.',
            content: {
              ...(success['content'] as JsonObject),
              'text/event-stream': {
                schema: { type: 'string', contentMediaType: 'application/json', contentSchema: refTo(event) },
                examples: { events: { value: eventExample ?? '' } },
              },
            },
          }
        : success,
      ...errorResponses(ERRORS, OF_INFERENCE, RATE_HEADERS),
    },
  };
}

const hello = { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }] };
const chunk = (delta: object, finish_reason: string | null, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-01k9x0w9q2e5v8m3t6r1b4n7ya', object: 'chat.completion.chunk', created: 1793865600, model: 'sim-small', choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
const usage = { prompt_tokens: 8, completion_tokens: 1, total_tokens: 9 };

export const INFERENCE_PATHS: JsonObject = {
  '/v1/chat/completions': {
    post: operation({
      id: 'createChatCompletion',
      summary: 'Complete a chat',
      description:
        'The primary route. Other fields are refused, unless the model passes them on. The largest possible cost is held ' +
        'before the model is called. The actual cost is charged.',
      request: requests.ChatCompletionRequest,
      examples: {
        plain: { value: hello },
        streamed: { value: { ...hello, stream: true } },
        system: {
          value: { ...hello, messages: [{ role: 'system', content: 'Be brief.' }, ...hello.messages], max_tokens: 64 },
        },
      },
      answer: answers.ChatCompletion,
      event: answers.ChatCompletionChunk,
      eventExample: `${chunk({ role: 'assistant', content: 'Hi' }, null)}${chunk({}, 'stop', { usage })}data: [DONE]\n\n`,
    }),
  },
  '/v1/completions': {
    post: operation({
      id: 'createCompletion',
      summary: 'Complete a text (legacy)',
      description: 'Prefer chat completions.',
      request: requests.CompletionRequest,
      examples: { plain: { value: { model: 'sim-small', prompt: 'Once upon a time', max_tokens: 32 } } },
      answer: answers.TextCompletion,
      event: answers.TextCompletion,
      eventExample: 'data: [DONE]\n\n',
    }),
  },
  '/v1/embeddings': {
    post: operation({
      id: 'createEmbedding',
      summary: 'Embed text',
      description: 'The vectors come in the order of the inputs.',
      request: requests.EmbeddingRequest,
      examples: { plain: { value: { model: 'sim-embed', input: ['first', 'second'] } } },
      answer: answers.EmbeddingList,
    }),
  },
  '/v1/models': {
    get: {
      operationId: 'listModels',
      tags: ['Inference API'],
      summary: 'List models',
      description: 'The models that the key may use.',
      security: [{ inferenceKey: [] }],
      responses: {
        '200': jsonResponse('The catalog of the key.', refTo(answers.ModelList), RATE_HEADERS),
        ...errorResponses(ERRORS, OF_MODELS, RATE_HEADERS),
      },
    },
  },
};

export const INFERENCE_SECURITY = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'sk-svc-…',
  description:
    'An inference key, issued by `POST /_api/v1/keys`. Keep it on your servers: never in a browser or a mobile app.',
};
