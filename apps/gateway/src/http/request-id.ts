import { newId } from '@tollgate/contracts';
import type { IncomingMessage } from 'node:http';

/** The form that a request id of a client must have. Any other id is replaced by one of ours. */
export const REQUEST_ID_PATTERN = '^[A-Za-z0-9_-]{1,64}$';

const REQUEST_ID = new RegExp(REQUEST_ID_PATTERN);

/** The header with our own id of a request, which is unique: callers may reuse theirs. */
export const OWN_ID_HEADER = 'x-tollgate-request-id';

/** The header of a repeated answer with our own id of the request that it answered first. */
export const ORIGINAL_ID_HEADER = 'x-tollgate-original-request-id';

/** The `x-request-id` of the answer: the client's own if its form is allowed, otherwise a new one. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newId('req');
}

/** Our own id of a request: `requestId`, unless the caller chose that one. */
export function ownIdOf({ headers }: Pick<IncomingMessage, 'headers'>, requestId: string): string {
  return headers['x-request-id'] === requestId ? newId('req') : requestId;
}
