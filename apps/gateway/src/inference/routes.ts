import type { TSchema } from '@sinclair/typebox';
import type { InferenceKind } from '@tollgate/contracts';
import type { JsonObject } from '../openapi/open-api';
import { REST_OF_PATH, type RouteTable } from '../openapi/route-table';
import * as requests from '../body/schemas';
import { INFERENCE_ERRORS, type InferenceErrorCode } from '../inference-errors';
import * as answers from './response-schemas';

export const INFERENCE_PREFIX = '/v1';

/** An endpoint: its handling by the pipeline, and its part of the OpenAPI document. */
export interface InferenceEndpoint {
  kind: InferenceKind | 'models' | 'model';
  id: string;
  summary: string;
  description: string;
  /** The schema of the body. Absent: there is no body. */
  schema?: TSchema;
  examples?: JsonObject;
  answer: TSchema;
  success: string;
  /** The schema of each event's data in a stream. */
  event?: TSchema;
  /** The data of one event. */
  eventExample?: string;
  errors: readonly InferenceErrorCode[];
}

/** Errors of requests without a route. */
const NOT_OF_A_ROUTE: InferenceErrorCode[] = ['route_not_found', 'method_not_allowed'];
const OF_INFERENCE = (Object.keys(INFERENCE_ERRORS) as InferenceErrorCode[]).filter(
  (code) => !NOT_OF_A_ROUTE.includes(code),
);
/** Only wrong keys are limited (429). With a valid one the answer comes from memory, and needs no store or backend. */
const OF_CATALOG: InferenceErrorCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'requests_limit_exceeded',
  'api_error',
  'overloaded_error',
];
const hello = { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }] };
const CHUNK = {
  id: 'chatcmpl-01k9x0w9q2e5v8m3t6r1b4n7ya',
  object: 'chat.completion.chunk',
  created: 1793865600,
  model: 'sim-small',
};
const LAST_CHOICE = { index: 0, delta: {}, finish_reason: 'stop' };
const usage = { prompt_tokens: 8, completion_tokens: 1, total_tokens: 9 };

/** The routes of the inference API. Each also has a path without the prefix. */
export const INFERENCE_ROUTES: RouteTable<InferenceEndpoint> = {
  '/chat/completions': {
    post: {
      kind: 'chat',
      id: 'createChatCompletion',
      summary: 'Complete a chat',
      description:
        'The primary route. Other fields are refused, unless the model passes them on. The largest possible cost is ' +
        'held before the model is called. The actual cost is charged.',
      schema: requests.ChatCompletionRequest,
      examples: {
        plain: { value: hello },
        streamed: { value: { ...hello, stream: true } },
        system: {
          value: { ...hello, messages: [{ role: 'system', content: 'Be brief.' }, ...hello.messages], max_tokens: 64 },
        },
      },
      answer: answers.ChatCompletion,
      success: 'The answer.',
      errors: OF_INFERENCE,
      event: answers.ChatCompletionChunk,
      eventExample: JSON.stringify({ ...CHUNK, choices: [LAST_CHOICE], usage }),
    },
  },
  '/completions': {
    post: {
      kind: 'completion',
      id: 'createCompletion',
      summary: 'Complete a text (legacy)',
      description: 'Prefer chat completions. Other fields are refused, unless the model passes them on.',
      schema: requests.CompletionRequest,
      examples: { plain: { value: { model: 'sim-small', prompt: 'Once upon a time', max_tokens: 32 } } },
      answer: answers.TextCompletion,
      success: 'The answer.',
      errors: OF_INFERENCE,
      event: answers.TextCompletion,
      eventExample: '[DONE]',
    },
  },
  '/embeddings': {
    post: {
      kind: 'embedding',
      id: 'createEmbedding',
      summary: 'Embed text',
      description:
        'The vectors come in the order of the inputs. Other fields are refused, unless the model passes them on.',
      schema: requests.EmbeddingRequest,
      examples: { plain: { value: { model: 'sim-embed', input: ['first', 'second'] } } },
      answer: answers.EmbeddingList,
      success: 'The answer.',
      errors: OF_INFERENCE,
    },
  },
  '/models': {
    get: {
      kind: 'models',
      id: 'listModels',
      summary: 'List models',
      description: 'The models that the key may use.',
      answer: answers.ModelList,
      success: 'The catalog of the key.',
      errors: OF_CATALOG,
    },
  },
  [`/models/${REST_OF_PATH}`]: {
    get: {
      kind: 'model',
      id: 'retrieveModel',
      summary: 'Retrieve a model',
      description: 'The row of one model in `GET /models`. The id may contain slashes, escaped or not.',
      answer: answers.Model,
      success: 'The model.',
      errors: [...OF_CATALOG, 'model_not_found'],
    },
  },
};
