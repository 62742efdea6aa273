import type { IncomingMessage } from 'node:http';

/** W3C Trace Context, version 00; later versions may append fields. Ids of zeros only are not valid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{1,128})?$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The trace that a request belongs to. */
export interface TraceContext {
  /** For the log. */
  traceId: string;
  /** For backends: names and values in turn. */
  headers: readonly string[];
}

/** The caller's trace context, or null if it sent none that is valid. */
export function traceContextOf({ headers }: Pick<IncomingMessage, 'headers'>): TraceContext | null {
  const parent = headers['traceparent'];
  if (typeof parent !== 'string') return null;
  const traceId = TRACEPARENT.exec(parent)?.[1];
  if (traceId === undefined) return null;
  const state = headers['tracestate'];
  const isValid = typeof state === 'string' && TRACESTATE.test(state);
  return { traceId, headers: ['traceparent', parent, ...(isValid ? ['tracestate', state] : [])] };
}
