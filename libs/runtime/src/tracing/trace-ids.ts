import { randomBytes } from 'node:crypto';

/** W3C Trace Context, version 00; later versions may append fields. Ids of zeros only are not valid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-[!-~]{1,128})?$/;
const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/** A place in a trace: the span that later ones belong to. */
export interface SpanPlace {
  traceId: string;
  spanId: string;
}

/** Null if it is not a valid `traceparent`. */
export function readTraceparent(value: unknown): SpanPlace | null {
  const found = typeof value === 'string' ? TRACEPARENT.exec(value) : null;
  return found && { traceId: found[1]!, spanId: found[2]! };
}

/** The `traceparent` of a span that is recorded. */
export function writeTraceparent({ traceId, spanId }: SpanPlace): string {
  return `00-${traceId}-${spanId}-01`;
}

export const newTraceId = (): string => randomBytes(TRACE_ID_BYTES).toString('hex');
export const newSpanId = (): string => randomBytes(SPAN_ID_BYTES).toString('hex');
