import { UnavailableError } from '@tollgate/contracts';
import { ApiError } from './api-error';

/**
 * Waits for a change that must be in force before the answer. When that cannot be confirmed, the answer is 503
 * `unavailable`: the change may be committed nevertheless. `message` tells the caller what may still be the case and
 * what to do. A repeat must be harmless.
 */
export async function inForce<T>(change: Promise<T>, message: string): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    throw Object.assign(new ApiError('unavailable', message), { cause: error });
  }
}
