import * as requests from '../body/schemas';
import { EARLY_CODES, INFERENCE_ERRORS, type InferenceErrorCode } from '../inference-errors';
import { ORIGINAL_ID_HEADER } from '../http/request-id';
import { MAX_KEY_CHARS } from '../idempotency/idempotency-keys';
import * as answers from '../inference/response-schemas';
import { INFERENCE_PREFIX, INFERENCE_ROUTES, type InferenceEndpoint } from '../inference/routes';
import { EARLY_ANSWERS, type EarlyEnvelope, withEarlyAnswers } from './early-answers';
import { type JsonObject, namedSchemas, ref, refTo } from './open-api';
import { pathParameters } from './operation';
import { errorResponses, jsonResponse, type DocumentedErrors } from './responses';
import { prefixed, REST_OF_PATH, routesOf } from './route-table';

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

const RATE_HEADERS = {
  ...Object.fromEntries(
    ['limit', 'remaining', 'reset'].flatMap((what) =>
      ['requests', 'tokens'].map((unit) => [`x-ratelimit-${what}-${unit}`, ref('headers', `RateLimit-${what}`)]),
    ),
  ),
  'x-ratelimit-scope': ref('headers', 'RateLimit-scope'),
};

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to repeat, with one key for each request, such as a UUID. For 24 hours a repeat with the ' +
    'same key and body gets the answer of the first request, without a charge: a stream as a stream. While the first ' +
    'one runs, a repeat gets 409. With another body it gets 422. A request that was refused, or failed before ' +
    'anything was delivered, may run again under its key. Each inference key has its own. An answer of more than ' +
    '1 MiB (by default) is not stored, and then a repeat gets 422. Your plan may have it switched off: then answers ' +
    'have no header `idempotent-replayed`, and a repeat is a new request. A repeated answer names its first request ' +
    `in \`${ORIGINAL_ID_HEADER}\`.`,
  schema: { type: 'string', minLength: 1, maxLength: MAX_KEY_CHARS },
};
const REPLAYED = { 'idempotent-replayed': ref('headers', 'IdempotentReplayed') };
/** The header of repeated answers, whose status is 200. */
const ORIGINAL = { [ORIGINAL_ID_HEADER]: ref('headers', 'OriginalRequestId') };

/** The parameters of a path, or of an operation with a body. */
function parametersOf(path: string, hasBody: boolean): JsonObject {
  if (path.includes(REST_OF_PATH)) return { parameters: pathParameters(path, { model: 'Id of the model.' }) };
  return hasBody ? { parameters: [IDEMPOTENCY_KEY] } : {};
}

function operation(
  path: string,
  { id, summary, description, schema, examples, errors, ...rest }: InferenceEndpoint,
): JsonObject {
  const headers = { ...RATE_HEADERS, ...(schema && REPLAYED) };
  return {
    operationId: id,
    tags: ['Inference API'],
    summary,
    description,
    security: [{ inferenceKey: [] }],
    ...parametersOf(path, schema !== undefined),
    ...(schema && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: refTo(schema), ...(examples && { examples }) } },
      },
    }),
    responses: {
      '200': success(rest, { ...headers, ...(schema && ORIGINAL) }),
      ...errorResponses(ERRORS, errors, headers),
    },
  };
}

function success(
  {
    answer,
    success: description,
    event,
    eventExample = '',
  }: Pick<InferenceEndpoint, 'answer' | 'success' | 'event' | 'eventExample'>,
  headers: JsonObject,
): JsonObject {
  const plain = jsonResponse(description, refTo(answer), headers);
  if (!event) return plain;
  const chunk = { contentMediaType: 'application/json', contentSchema: refTo(event) };
  const data = { type: 'string', anyOf: [{ const: '[DONE]' }, chunk] };
  return {
    ...plain,
    description:
      'The answer. With `stream: true` it is server-sent events, each of this schema: its data is one JSON object, ' +
      'and the last event is `data: [DONE]`. An error after the first byte is one event ' +
      '`data: {"error": …}`, followed by `data: [DONE]`.',
    content: {
      ...(plain['content'] as JsonObject),
      'text/event-stream': {
        // One event, as generators of clients expect it. OpenAPI 3.1 does not say how events are described.
        schema: { type: 'object', required: ['data'], properties: { data } },
        examples: { event: { value: { data: eventExample } } },
      },
    },
  };
}

export const INFERENCE_EARLY: EarlyEnvelope = {
  prefix: 'Inference',
  schema: ERRORS.schema,
  answers: { ...EARLY_ANSWERS, NotHttp: { status: 400, code: null, message: 'The request is not valid HTTP.' } },
  body: ({ status, code, message }) => ({
    error: { message, type: 'invalid_request_error', param: null, code: code ?? EARLY_CODES[status] ?? null },
  }),
};

const PATHS: JsonObject = Object.fromEntries(
  routesOf(prefixed(INFERENCE_PREFIX, INFERENCE_ROUTES)).map(({ path, method, operation: endpoint }) => [
    path,
    { [method]: operation(path, endpoint) },
  ]),
);
export const INFERENCE_PATHS = withEarlyAnswers(PATHS, INFERENCE_EARLY);

export const INFERENCE_SECURITY = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'sk-svc-…',
  description:
    'An inference key, issued by `POST /_api/v1/keys`. Keep it on your servers: never in a browser or a mobile app.',
};
