/** Why a backend gave no answer, or no whole one. */
export type UpstreamFailure =
  /** Its own 400 (or 413, 422): the request is at fault. `message` and `param` are its words. */
  | { kind: 'refused'; message: string | null; param: string | null; code: string | null }
  /** 429 or 503, or more connections than allowed: it will pass. */
  | { kind: 'busy'; retryAfterSeconds: number | null }
  | { kind: 'timeout' }
  /** Not its fault: our process is stopping, and the time for running requests is over. */
  | { kind: 'stopped' }
  /** No connection, another status, or an answer that cannot be read or breaks off. `reason` is for the log only. */
  | { kind: 'failed'; reason: string };

const REFUSED = new Set([400, 413, 422]);
const MAX_MESSAGE_CHARS = 1_000;
const MAX_RETRY_AFTER_SECONDS = 3_600;

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);

/** Whether the same request may succeed at another backend: it was not begun, or it failed for a reason of the backend's own. */
export function mayRetry(failure: UpstreamFailure, connected: boolean): boolean {
  return (
    failure.kind === 'busy' ||
    (failure.kind === 'failed' && /^status 5/.test(failure.reason)) ||
    (!connected && failure.kind !== 'refused')
  );
}

export function failureOfError(error: Error & { code?: string }): UpstreamFailure {
  return TIMEOUTS.has(error.code ?? '') ? { kind: 'timeout' } : { kind: 'failed', reason: error.code ?? error.name };
}

/** What a status other than 2xx means. */
export function failureOfStatus(status: number, retryAfter: string | undefined, body: string): UpstreamFailure {
  if (REFUSED.has(status)) return { kind: 'refused', ...readError(body) };
  if (status === 429 || status === 503) return { kind: 'busy', retryAfterSeconds: readSeconds(retryAfter) };
  if (status === 504 || status === 408) return { kind: 'timeout' };
  return { kind: 'failed', reason: `status ${status}` };
}

function readSeconds(value: string | undefined): number | null {
  const seconds = Number(value);
  return value !== undefined && Number.isFinite(seconds) && seconds > 0
    ? Math.min(Math.ceil(seconds), MAX_RETRY_AFTER_SECONDS)
    : null;
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
  return {
    message: text(inner['message']) ?? text(inner['detail']) ?? text(outer['error']),
    param: text(inner['param']),
    code: text(inner['code']),
  };
}
