import { ApiError, type ErrorTable } from '../http/envelope';

/**
 * Every error that the management API answers with: code, status, public message. The one table: the filter answers from it, the OpenAPI
 * document is written from it, and a test provokes each. A new code starts here.
 */
export const MANAGEMENT_ERRORS = {
  invalid_json: { status: 400, message: 'The body is not a JSON object.' },
  name_required: { status: 400, message: 'A name is required.' },
  invalid_name: {
    status: 400,
    message:
      'name must be a string of 1 to 100 characters. At least one must be visible. Control and bidirectional formatting characters are not allowed.',
  },
  invalid_profile: { status: 400, message: "profile must name a key profile of the tenant's plan." },
  invalid_expires_at: { status: 400, message: 'expiresAt must be an ISO 8601 timestamp in the future.' },
  invalid_parameter: { status: 400, message: 'A query parameter is not valid.' },
  missing_credential: {
    status: 401,
    message: 'The request has no management token. Send it as "Authorization: Bearer fma_…".',
  },
  invalid_token: { status: 401, message: 'The management token is not valid.' },
  token_expired: { status: 401, message: 'The management token has expired.' },
  token_revoked: { status: 401, message: 'The management token has been revoked.' },
  inference_key_not_accepted: {
    status: 401,
    message: 'This API does not accept inference keys (sk-svc-…). Send a management token (fma_…).',
  },
  insufficient_scope: {
    status: 403,
    message: 'The management token does not have the scope that this endpoint requires.',
  },
  not_found: { status: 404, message: 'Not found.' },
  method_not_allowed: {
    status: 405,
    message: 'This endpoint does not support this method. The Allow header lists the supported ones.',
  },
  payload_too_large: { status: 413, message: 'The body is larger than 64 KiB.' },
  unsupported_media_type: { status: 415, message: 'The body must be JSON. Send "Content-Type: application/json".' },
  rate_limited: {
    status: 429,
    message: 'Too many requests per minute with this management token. Retry after the time in the Retry-After header.',
  },
  internal_error: { status: 500, message: 'The service failed to process the request.' },
  unavailable: {
    status: 503,
    message: 'The service cannot answer at the moment. Try again shortly.',
    retryAfterSeconds: 1,
  },
} as const satisfies ErrorTable;

export type ManagementErrorCode = keyof typeof MANAGEMENT_ERRORS;

/** An error of the table, with a message of its own where that helps the caller. */
export function managementError(
  code: ManagementErrorCode,
  message?: string,
  headers?: Record<string, string>,
): ApiError {
  return new ApiError(code, message, headers);
}
