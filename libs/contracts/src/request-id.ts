import { CREDENTIAL_LIKE } from './credentials';
import { newId } from './ids';

/** The form that a request id of a caller must have. Any other id is replaced by one of ours. */
export const REQUEST_ID_PATTERN = '^[A-Za-z0-9_-]{1,64}$';

const REQUEST_ID = new RegExp(REQUEST_ID_PATTERN);

/**
 * The `x-request-id` of the answer: `given`, the caller's own, if its form is allowed, otherwise a new one. Logs,
 * events and audit entries keep it, so one that looks like a credential is replaced too.
 */
export function requestIdFrom(given: unknown): string {
  const isAllowed = typeof given === 'string' && REQUEST_ID.test(given) && !CREDENTIAL_LIKE.test(given);
  return isAllowed ? given : newId('req');
}
