import { NotInForceError, RequestError, UnavailableError } from '@tollgate/contracts';

/** An error of a surface: the status and public message of a code. */
export interface ErrorEntry {
  status: number;
  message: string;
  /** Value of `Retry-After`, for errors where waiting helps. */
  retryAfterSeconds?: number;
}

/** The errors of a surface by code. `Entry` may have fields that only the envelope of the surface needs. */
export type ErrorTable<Entry extends ErrorEntry = ErrorEntry> = Readonly<Record<string, Entry>>;

/** Codes for errors of the HTTP layer, by status. Its own messages are not public. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
};

/**
 * What a surface shows of an error that is not its own. A RequestError keeps its code if that is a client error of the
 * table, and its text if it has one. Other errors have a code by their HTTP status, 500 if they have none; those of
 * further statuses come from `codeOfStatus`.
 */
export function foreignError(
  table: ErrorTable,
  error: unknown,
  codeOfStatus: (status: number) => string,
): { code: string; message?: string | undefined } {
  if (error instanceof NotInForceError) return { code: 'unavailable', message: error.publicMessage };
  if (error instanceof UnavailableError) return { code: 'unavailable' };
  if (error instanceof RequestError) {
    const entry = Object.hasOwn(table, error.code) ? table[error.code] : undefined;
    const isShown = entry !== undefined && entry.status < 500;
    return isShown ? { code: error.code, message: error.publicMessage } : { code: 'internal_error' };
  }
  const status = httpStatusOf(error);
  return { code: CODE_OF_STATUS[status] ?? codeOfStatus(status) };
}

/** Status of a Fastify error (`statusCode`) or a Nest HttpException (`getStatus()`). 500 for other errors. */
function httpStatusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null) return 500;
  const { statusCode, getStatus } = error as { statusCode?: unknown; getStatus?: unknown };
  if (typeof statusCode === 'number') return statusCode;
  return typeof getStatus === 'function' ? Number(getStatus.call(error)) : 500;
}
