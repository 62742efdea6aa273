import { UnavailableError } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ApiError } from './envelope';

/**
 * Waits for a change that is answered once it is in force. Where nobody can say that it is (it may be committed all the same) the answer is 503 `unavailable`, with a message
 * that says what may still be and what to do. A repeat must be harmless.
 */
export async function inForce<T>(change: Promise<T>, message: string): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    throw Object.assign(new ApiError('unavailable', message), { cause: error });
  }
}

/** Errors: not_found, and unavailable as long as the edge may not know of it. */
export async function revokeCredential(
  services: Requests,
  kind: 'key' | 'token',
  credential: { tenantId: string; id: string },
): Promise<void> {
  const subject = kind === 'key' ? 'auth.keys.revoke' : 'auth.tokens.revoke';
  const message = `The ${kind} may still be accepted. Repeat the revocation until it succeeds.`;
  await inForce(services.request(subject, credential), message);
}
