import { asciiJson } from '../generate/ascii-json';

/** A request that this backend refuses, with the fields of OpenAI's errors. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  constructor(
    readonly status: number,
    message: string,
    readonly param: string | null = null,
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

/** Every message contains "simulator", so that tests can prove that a gateway passes none but a cleaned 400 or 422. */
export function errorBody(error: RequestError): string {
  return asciiJson({
    error: {
      message: `simulator: ${error.message}`,
      type: TYPES[error.status] ?? (error.status < 500 ? 'invalid_request_error' : 'server_error'),
      param: error.param,
      code: error.code,
    },
  });
}

/** The error of the fault `status`. */
export function faultError(status: number): RequestError {
  const [message, code] = FAULTS[status] ?? ['fault as configured', null];
  return new RequestError(status, message, status === 400 ? 'messages' : null, code);
}

const TYPES: Record<number, string> = { 401: 'authentication_error', 403: 'permission_error', 429: 'rate_limit_error' };
const FAULTS: Record<number, [message: string, code: string | null]> = {
  400: ['this request is invalid', 'invalid_value'],
  401: ['incorrect API key provided: sk-sim********cret', 'invalid_api_key'],
  403: ['this project has no access to the model', 'model_access_denied'],
  404: ['the model does not exist', 'model_not_found'],
  429: ['rate limit reached in organization org-simulator', 'rate_limit_exceeded'],
  500: ['the server had an error while processing the request', null],
  503: ['the engine is overloaded', 'engine_overloaded'],
};
