import type { FailedAttempt } from '@tollgate/contracts';
import { operatorWords } from './backend-words';
import { retryAfterSeconds } from './retry-after';

/** Why a backend gave no complete answer. */
export type UpstreamFailure =
  /**
   * The backend answered 400 or 422: the request is at fault. `message` is the backend's and must be redacted for
   * clients (backend-words.ts).
   */
  | { kind: 'refused'; message: string | null; param: string | null; code: string | null }
  /** The backend answered 413. */
  | { kind: 'too_large' }
  /** The backend answered 429 or 503, or its connection limit is reached. Temporary. */
  | { kind: 'busy'; retryAfterSeconds: number | null }
  | { kind: 'timeout' }
  /** Our process is stopping, and the time for running requests is over. */
  | { kind: 'stopped' }
  /**
   * No connection, another status, or an answer that is unreadable or incomplete. `reason` is for the log only.
   * `status` is set if the backend answered with one.
   */
  | { kind: 'failed'; reason: string; status?: number };

/** No backend was asked: all are full, or will surely fail. */
export const ALL_BUSY: UpstreamFailure = { kind: 'busy', retryAfterSeconds: null };

/** How far a failed request got. */
export type Progress =
  /** The backend did no work: no connection was open, or it answered 429, or 503 at once. */
  | 'not_begun'
  /** The request was written to a kept connection that the backend was closing. */
  | 'stale'
  /** The backend may have worked on the request. */
  | 'may_have_begun';

const REFUSED = new Set([400, 422]);
/** The most entries read of FastAPI's list. */
const MAX_DETAILS = 8;
/** Limit of the backend's message before redaction. */
const MAX_MESSAGE_CHARS = 4_000;

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);

/** The backend does not serve us at all: a wrong key, no money, a wrong path, or a page of some proxy. */
const MISCONFIGURED = new Set([401, 402, 403, 404, 405, 407, 410]);

/** TGI could not generate, for example because its GPU failed. */
const FAILED_GENERATION = 424;

/**
 * Whether another backend may succeed. A request that was refused as such is not repeated, as others would refuse it
 * too.
 */
export function mayHelpElsewhere(failure: UpstreamFailure): boolean {
  switch (failure.kind) {
    case 'busy':
    case 'timeout':
      return true;
    case 'failed':
      return failure.status === undefined || isOfEngine(failure.status) || isMisconfigured(failure.status);
    case 'refused':
    case 'too_large':
    case 'stopped':
      return false;
  }
}

/** Codes of Node and undici. Other reasons may have words of a backend, which may repeat a part of the request. */
const CODE = /^[A-Z][A-Z0-9_]{1,39}$/;

/** The failure for the record of a request: without words of the backend. */
export function failedAttempt(failure: UpstreamFailure, backend: string): FailedAttempt {
  const { kind: why } = failure;
  if (failure.kind !== 'failed') return { backend, why };
  const { status, reason } = failure;
  return { backend, why, ...(status !== undefined && { status }), ...(CODE.test(reason) && { code: reason }) };
}

/** Whether the failure says something about the backend, not about the request. 429 is a backend that works. */
export function isBackendsFault(failure: UpstreamFailure, status: number): boolean {
  return failure.kind !== 'stopped' && status !== 429 && mayHelpElsewhere(failure);
}

/** The status says that the engine, or what is before it, failed at the request. */
export function isOfEngine(status: number): boolean {
  return status >= 500 || status === FAILED_GENERATION;
}

function isMisconfigured(status: number): boolean {
  return (status >= 300 && status < 400) || MISCONFIGURED.has(status);
}

export function failureOfError(error: Error & { code?: string }): UpstreamFailure {
  return TIMEOUTS.has(error.code ?? '') ? { kind: 'timeout' } : { kind: 'failed', reason: error.code ?? error.name };
}

/**
 * The failure that a status other than 2xx means.
 * @param secret the backend's key, which is removed from its message
 */
export function failureOfStatus(
  status: number,
  retryAfter: string | undefined,
  body: string,
  secret: string | null = null,
): UpstreamFailure {
  if (REFUSED.has(status)) return { kind: 'refused', ...readError(body) };
  if (status === 413) return { kind: 'too_large' };
  if (status === 429 || status === 503) return { kind: 'busy', retryAfterSeconds: retryAfterSeconds(retryAfter) };
  if (status === 504 || status === 408) return { kind: 'timeout' };
  const words = operatorWords(readError(body).message ?? body.slice(0, MAX_MESSAGE_CHARS), secret);
  return { kind: 'failed', status, reason: words === '' ? `status ${status}` : `status ${status}: ${words}` };
}

/**
 * FastAPI's `detail`: a text, or a list of what is wrong where. `body.messages.0.role` is the path of a field of the
 * request: the first one becomes `param`.
 */
function readDetail(detail: unknown): { message: string | null; param: string | null } {
  if (typeof detail === 'string') return { message: detail, param: null };
  if (!Array.isArray(detail)) return { message: null, param: null };
  const faults = (detail as ({ loc?: unknown; msg?: unknown } | null)[])
    .slice(0, MAX_DETAILS)
    .map((fault) => ({
      at: (Array.isArray(fault?.loc) ? (fault.loc as unknown[]) : []).filter((part) => part !== 'body').join('.'),
      text: typeof fault?.msg === 'string' ? fault.msg : '',
    }))
    .filter(({ text }) => text !== '');
  const message = faults.map(({ at, text }) => (at === '' ? text : `${at}: ${text}`)).join('; ');
  return { message, param: faults[0]?.at ?? null };
}

/** OpenAI's envelope, FastAPI's `detail`, or a bare `message`. */
function readError(body: string): { message: string | null; param: string | null; code: string | null } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return { message: null, param: null, code: null };
  }
  const outer = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<string, unknown>;
  const inner = (typeof outer['error'] === 'object' && outer['error'] !== null ? outer['error'] : outer) as Record<
    string,
    unknown
  >;
  const text = (value: unknown) =>
    typeof value === 'string' && value !== '' ? value.slice(0, MAX_MESSAGE_CHARS) : null;
  const detail = readDetail(inner['detail']);
  return {
    message: text(inner['message']) ?? text(detail.message) ?? text(outer['error']),
    param: text(inner['param']) ?? text(detail.param),
    code: text(inner['code']),
  };
}
