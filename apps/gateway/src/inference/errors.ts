import { UnavailableError } from '@tollgate/contracts';

/** The one table of what the inference API refuses with: wire code, status, `type`, and the message when none more precise is given. */
export const INFERENCE_ERRORS = {
  invalid_json: [400, 'invalid_request_error', 'The body is not valid JSON.'],
  missing_required_parameter: [400, 'invalid_request_error', 'A required parameter is missing.'],
  invalid_value: [400, 'invalid_request_error', 'A parameter has a value that is not allowed.'],
  invalid_type: [400, 'invalid_request_error', 'A parameter has the wrong type.'],
  context_length_exceeded: [400, 'invalid_request_error', 'The prompt is longer than the context of the model.'],
  unsupported_parameter: [400, 'invalid_request_error', 'The model does not support a parameter.'],
  missing_api_key: [
    401,
    'authentication_error',
    'The request has no API key. Send it as "Authorization: Bearer sk-svc-…".',
  ],
  invalid_api_key: [401, 'authentication_error', 'The API key is not valid.'],
  credit_exhausted: [402, 'billing_error', 'The prepaid credit is used up. Top up to continue.'],
  budget_reached: [402, 'billing_error', 'The budget for this month is spent. Raise it, or wait for the next month.'],
  tenant_suspended: [402, 'billing_error', 'The account is suspended. Contact the operator.'],
  model_not_found: [
    404,
    'invalid_request_error',
    'The model does not exist, or this key may not use it. GET /models lists the models of this key.',
  ],
  route_not_found: [404, 'invalid_request_error', 'No endpoint has this path.'],
  method_not_allowed: [405, 'invalid_request_error', 'This endpoint does not support this method.'],
  request_timeout: [
    408,
    'invalid_request_error',
    'The body did not arrive in time. The limit is 10 s plus 1 s for each 128 KiB.',
  ],
  payload_too_large: [413, 'invalid_request_error', 'The body is too large.'],
  unsupported_media_type: [
    415,
    'invalid_request_error',
    'The body must be JSON. Send "Content-Type: application/json".',
  ],
  requests_limit_exceeded: [429, 'rate_limit_error', 'Too many requests per minute.'],
  tokens_limit_exceeded: [429, 'rate_limit_error', 'Too many tokens per minute.'],
  concurrency_limit_exceeded: [429, 'rate_limit_error', 'Too many requests at once.'],
  credit_held: [
    429,
    'rate_limit_error',
    'Your remaining credit or budget is reserved by requests in progress. Retry when they finish.',
  ],
  api_error: [500, 'api_error', 'The service failed to process the request.'],
  upstream_error: [502, 'upstream_error', 'The model failed to answer.'],
  overloaded_error: [503, 'overloaded_error', 'The service cannot take the request at the moment. Try again shortly.'],
  timeout_error: [504, 'timeout_error', 'The model did not answer in time.'],
} as const satisfies Record<string, readonly [status: number, type: string, message: string]>;

export type InferenceErrorCode = keyof typeof INFERENCE_ERRORS;

/** For those whom a stopping process cuts off before their answer is complete. */
export function stopping(): InferenceError {
  return new InferenceError('overloaded_error', {
    message: 'The service is restarting and has ended the request. Try again.',
    retryAfterSeconds: 1,
  });
}

/** A refusal on its way to the client. `message` is public: it never carries an inner one. */
export class InferenceError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  /** Whole seconds for `Retry-After`. */
  readonly retryAfterSeconds: number | null;

  constructor(
    readonly code: InferenceErrorCode,
    {
      message,
      param = null,
      retryAfterSeconds = null,
    }: { message?: string | undefined; param?: string | null; retryAfterSeconds?: number | null } = {},
  ) {
    const [status, type, standard] = INFERENCE_ERRORS[code];
    super(message ?? standard);
    this.name = 'InferenceError';
    this.status = status;
    this.type = type;
    this.param = param;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** The envelope `{ error: { message, type, param, code } }` as JSON. */
  toBody(): string {
    return JSON.stringify({ error: { message: this.message, type: this.type, param: this.param, code: this.code } });
  }
}

/** A body that a worker was lost to: 503, and for its key as an invalid request, so that it is not repeated for nothing. */
export class RuinousBodyError extends UnavailableError {}
