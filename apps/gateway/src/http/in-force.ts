import { UnavailableError } from '@tollgate/contracts';
import { ApiError } from './api-error';

/**
 * Waits for a change that is answered once it is in force. Where nobody can say that it is (it may be committed all the
 * same) the answer is 503 `unavailable`, with a message that says what may still be and what to do. A repeat must be
 * harmless.
 */
export async function inForce<T>(change: Promise<T>, message: string): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    throw Object.assign(new ApiError('unavailable', message), { cause: error });
  }
}
