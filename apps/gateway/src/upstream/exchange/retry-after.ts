const MAX_RETRY_AFTER_SECONDS = 3_600;

/** The whole seconds that a `Retry-After` header means, from 1 to 3,600: a number or an HTTP date. Null: unreadable. */
export function retryAfterSeconds(value: string | string[] | undefined, nowMs = Date.now()): number | null {
  if (typeof value !== 'string') return null;
  const text = value.trim();
  // An HTTP date begins with the name of a day. Date.parse accepts much else.
  const seconds = /^\d+(?:\.\d+)?$/.test(text)
    ? Number(text)
    : /^[A-Z][a-z]{2,8},? /.test(text)
      ? (Date.parse(text) - nowMs) / 1_000
      : NaN;
  if (!Number.isFinite(seconds)) return null;
  return Math.min(Math.max(Math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS);
}

/** The sooner of two waits. Null: unknown. */
export function sooner(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
