import { newId, requestIdFrom } from '@tollgate/contracts';
import type { IncomingMessage } from 'node:http';

/** The header with our own id of a request, which is unique: callers may reuse theirs. */
export const OWN_ID_HEADER = 'x-tollgate-request-id';

/** The header of a repeated answer with our own id of the request that it answered first. */
export const ORIGINAL_ID_HEADER = 'x-tollgate-original-request-id';

/** The `x-request-id` of the answer. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return requestIdFrom(headers['x-request-id']);
}

/** Our own id of a request: `requestId`, unless the caller chose that one. */
export function ownIdOf({ headers }: Pick<IncomingMessage, 'headers'>, requestId: string): string {
  return headers['x-request-id'] === requestId ? newId('req') : requestId;
}
