import { RequestError, UnavailableError } from '@tollgate/contracts';
import type { logger } from '@tollgate/runtime';

/** The answer to a caller whose handler failed. */
export type RequestFailure = { refusal: { code: string; message: string } } | { unavailable: true };

/**
 * Maps a handler's error for every transport. A RequestError reaches the caller with its code and message. Any other
 * error is logged here, and the caller only learns that the request could not be answered.
 */
export function failureOf(error: unknown, subject: string, log: ReturnType<typeof logger>): RequestFailure {
  if (error instanceof RequestError) return { refusal: { code: error.code, message: error.message } };
  if (error instanceof UnavailableError)
    log.warn({ reason: error.message, subject }, 'a request cannot be answered now');
  else log.error({ err: error, subject }, 'a request handler failed');
  return { unavailable: true };
}
