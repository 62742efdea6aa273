import type { Attributes } from '@opentelemetry/api';
import type { SpanPlace } from './trace-ids';

/** A span that has ended. Times are milliseconds since 1970. */
export interface EndedSpan {
  name: string;
  kind: 'server' | 'client' | 'consumer' | 'internal';
  /** Its own place. */
  place: SpanPlace;
  /** Null: it is the first of its trace. */
  parentSpanId: string | null;
  startMs: number;
  endMs: number;
  attributes: Attributes;
  events?: readonly { name: string; atMs: number }[];
  /** Why it failed: a code, never a text of a client or a backend. */
  error?: string | null;
}

/**
 * Records spans that have ended, and decides which traces are kept. Stages note times, and spans are made from them at
 * the end of a request, so a request that is not kept costs a few numbers. Without tracing there is no tracer.
 */
export abstract class Tracer {
  /** Slower requests are always kept. */
  abstract readonly slowMs: number;

  /** Whether a new trace is kept, decided at its beginning. */
  abstract keepsNew(): boolean;

  /** The same for a trace of somebody else: every process decides the same. */
  abstract keeps(traceId: string): boolean;

  abstract record(span: EndedSpan): void;

  /** Exports the remaining spans, for a bounded time. */
  abstract close(): Promise<void>;
}
