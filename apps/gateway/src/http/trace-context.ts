import type { IncomingMessage } from 'node:http';
import { readTraceparent } from '@tollgate/runtime';

const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The trace that a request belongs to. */
export interface TraceContext {
  /** For the log. */
  traceId: string;
  /** For backends: names and values in turn. */
  headers: readonly string[];
}

/** The id of the caller's span. */
export function parentIn({ headers }: TraceContext): string {
  return headers[1]!.split('-')[2]!;
}

/** The caller's trace context, or null if it sent none that is valid. */
export function traceContextOf({ headers }: Pick<IncomingMessage, 'headers'>): TraceContext | null {
  const parent = headers['traceparent'];
  if (typeof parent !== 'string') return null;
  const place = readTraceparent(parent);
  if (!place) return null;
  const state = headers['tracestate'];
  const isValid = typeof state === 'string' && TRACESTATE.test(state);
  return { traceId: place.traceId, headers: ['traceparent', parent, ...(isValid ? ['tracestate', state] : [])] };
}
