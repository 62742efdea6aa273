import type { ErrorTable } from '@tollgate/runtime';
import { ACCOUNT_ERRORS } from '../http/account/errors';
import { ApiError } from '../http/api-error';

/**
 * Every error of the management API: code, status, public message. The filter answers from this table, and the OpenAPI
 * document is generated from it. A test provokes each error.
 */
export const MANAGEMENT_ERRORS = {
  ...ACCOUNT_ERRORS,
  missing_credential: {
    status: 401,
    message: 'The request has no management token. Send it as "Authorization: Bearer fma_…".',
  },
  invalid_token: { status: 401, message: 'The management token is not valid. Check it, or create a new one.' },
  token_expired: { status: 401, message: 'The management token has expired. Create a new one.' },
  token_revoked: { status: 401, message: 'The management token has been revoked. Create a new one.' },
  inference_key_not_accepted: {
    status: 401,
    message: 'This API does not accept inference keys (sk-svc-…). Send a management token (fma_…).',
  },
  insufficient_scope: {
    status: 403,
    message: 'The management token does not have the scope that this endpoint requires.',
  },
  rate_limited: {
    status: 429,
    message: 'Too many requests per minute with this management token. Retry after the time in the Retry-After header.',
  },
} as const satisfies ErrorTable;

export type ManagementErrorCode = keyof typeof MANAGEMENT_ERRORS;

/** An error of the table, with its own message if that helps the caller. */
export function managementError(
  code: ManagementErrorCode,
  message?: string,
  headers?: Record<string, string>,
): ApiError {
  return new ApiError(code, message, headers);
}
