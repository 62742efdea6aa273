import { ASKED_MODEL, CREDENTIAL_LIKE, type RefusedBy, UnavailableError } from '@tollgate/contracts';
import type { ErrorEntry, ErrorTable } from '@tollgate/runtime';
import { DEFAULT_MAX_BODY_MIB } from './options';

/** The envelope of the OpenAI wire format also has a `type`. */
interface InferenceErrorEntry extends ErrorEntry {
  type: string;
}

/** Every error of the inference API: code, status, `type`, and the default message. */
export const INFERENCE_ERRORS = {
  invalid_json: { status: 400, type: 'invalid_request_error', message: 'The body is not valid JSON.' },
  missing_required_parameter: {
    status: 400,
    type: 'invalid_request_error',
    message: 'A required parameter is missing.',
  },
  invalid_value: {
    status: 400,
    type: 'invalid_request_error',
    message: 'A parameter has a value that is not allowed.',
  },
  invalid_type: { status: 400, type: 'invalid_request_error', message: 'A parameter has the wrong type.' },
  context_length_exceeded: {
    status: 400,
    type: 'invalid_request_error',
    message: 'The prompt is too long for the context of the model. Shorten it.',
  },
  unsupported_parameter: {
    status: 400,
    type: 'invalid_request_error',
    message: 'The request has a parameter that the model does not support.',
  },
  missing_api_key: {
    status: 401,
    type: 'authentication_error',
    message: 'The request has no API key. Send it as "Authorization: Bearer sk-svc-…".',
  },
  invalid_api_key: {
    status: 401,
    type: 'authentication_error',
    message: 'The API key is not valid. Check it, or create a new key.',
  },
  credit_exhausted: {
    status: 402,
    type: 'billing_error',
    message: 'The prepaid credit is used up. Top up to continue.',
  },
  budget_reached: {
    status: 402,
    type: 'billing_error',
    message: 'The budget for this month is spent. Raise it, or wait for the next month.',
  },
  tenant_suspended: { status: 402, type: 'billing_error', message: 'The account is suspended. Contact the operator.' },
  model_not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: 'The model does not exist, or this key may not use it. GET /models lists the models of this key.',
  },
  route_not_found: { status: 404, type: 'invalid_request_error', message: 'No endpoint has this path. See /docs.' },
  method_not_allowed: {
    status: 405,
    type: 'invalid_request_error',
    message: 'This endpoint does not support this method. The Allow header lists the supported ones.',
  },
  request_timeout: {
    status: 408,
    type: 'invalid_request_error',
    message:
      'The body did not arrive in time. The limit is 10 s plus 1 s for each 128 KiB. Check the connection, and try again.',
  },
  idempotency_in_progress: {
    status: 409,
    type: 'invalid_request_error',
    message: 'A request with this Idempotency-Key is in progress. Retry when it has ended.',
  },
  payload_too_large: {
    status: 413,
    type: 'invalid_request_error',
    message: `The body is larger than the limit of ${DEFAULT_MAX_BODY_MIB} MiB. Send a smaller one.`,
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    message: 'The body must be JSON. Send "Content-Type: application/json".',
  },
  idempotency_mismatch: {
    status: 422,
    type: 'invalid_request_error',
    message: 'This Idempotency-Key was used with another request. Send a key only with the same body and path.',
  },
  idempotency_answer_not_stored: {
    status: 422,
    type: 'invalid_request_error',
    message:
      'The request with this Idempotency-Key was served and charged, but its answer is not stored. To run it again, ' +
      'and pay again, send another key.',
  },
  idempotency_answer_incomplete: {
    status: 422,
    type: 'invalid_request_error',
    message:
      'The first client with this Idempotency-Key left before the end of its stream. The stored answer ends here, ' +
      'and was charged up to here. To run it again, and pay again, send another key.',
  },
  requests_limit_exceeded: { status: 429, type: 'rate_limit_error', message: 'Too many requests per minute.' },
  tokens_limit_exceeded: { status: 429, type: 'rate_limit_error', message: 'Too many tokens per minute.' },
  concurrency_limit_exceeded: { status: 429, type: 'rate_limit_error', message: 'Too many requests at once.' },
  credit_held: {
    status: 429,
    type: 'rate_limit_error',
    message: 'Your remaining credit or budget is reserved by requests in progress. Retry when they finish.',
  },
  api_error: {
    status: 500,
    type: 'api_error',
    message:
      'The service failed to process the request. Try again. If it fails again, give the operator the x-request-id ' +
      'of the answer.',
  },
  upstream_error: { status: 502, type: 'upstream_error', message: 'The model failed to answer. Try again.' },
  overloaded_error: {
    status: 503,
    type: 'overloaded_error',
    message: 'The service cannot take the request at the moment. Try again shortly.',
  },
  timeout_error: { status: 504, type: 'timeout_error', message: 'The model did not answer in time. Try again.' },
} as const satisfies ErrorTable<InferenceErrorEntry>;

export type InferenceErrorCode = keyof typeof INFERENCE_ERRORS;

/** The codes of answers before a route is reached, by status. Input that is not an HTTP request has none. */
export const EARLY_CODES: Readonly<Record<number, InferenceErrorCode>> = {
  408: 'request_timeout',
  503: 'overloaded_error',
};

/** The error of a request that a stopping process cuts off. */
export function stopping(): InferenceError {
  return new InferenceError('overloaded_error', {
    message: 'The service is restarting and has ended the request. Try again.',
    retryAfterSeconds: 1,
  });
}

/** An error for the client. `message` is public and never contains an inner error's message. */
export class InferenceError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  /** Whole seconds for `Retry-After`. */
  readonly retryAfterSeconds: number | null;
  /** What refused the request, for an explanation. Not sent to the client. */
  readonly by: RefusedBy | undefined;
  /** The model that the body names, for an explanation. Null: the body was not read, or it names none. */
  askedModel: string | null = null;

  constructor(
    readonly code: InferenceErrorCode,
    {
      message,
      param = null,
      retryAfterSeconds = null,
      by,
    }: {
      message?: string | undefined;
      param?: string | null;
      retryAfterSeconds?: number | null;
      by?: RefusedBy | undefined;
    } = {},
  ) {
    const { status, type, message: standard } = INFERENCE_ERRORS[code];
    super(message ?? standard);
    this.name = 'InferenceError';
    this.status = status;
    this.type = type;
    this.param = param;
    this.retryAfterSeconds = retryAfterSeconds;
    this.by = by;
  }

  /** The envelope `{ error: { message, type, param, code } }` as JSON. */
  toBody(): string {
    return JSON.stringify({ error: { message: this.message, type: this.type, param: this.param, code: this.code } });
  }
}

/** Returns the error, with the model that the body names, if that could be the name of a model. */
export function askedFor<E>(error: E, body: unknown): E {
  const { model } = (body ?? {}) as { model?: unknown };
  const isName = typeof model === 'string' && ASKED_MODEL.test(model) && !CREDENTIAL_LIKE.test(model);
  if (error instanceof InferenceError && isName) error.askedModel = model;
  return error;
}

/** The longest id of a model in a request. */
export const MAX_MODEL_ID_CHARS = 256;

/** The error of a model that does not exist or that the key may not use: the caller cannot tell which. */
export function unknownModel(id: string): InferenceError {
  return new InferenceError('model_not_found', {
    param: 'model',
    message:
      `The model '${id.slice(0, MAX_MODEL_ID_CHARS)}' does not exist, or the key may not use it. ` +
      'GET /models lists the models of this key.',
  });
}

/**
 * A body that crashed its worker or took it too long. It is answered 503 and counted as an invalid request of its key,
 * so that repeating it is not free.
 */
export class RuinousBodyError extends UnavailableError {}
