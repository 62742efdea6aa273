import { diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { logger } from '../logging/logging';
import { settlesWithin } from '../timing';
import { newTraceId, newSpanId, type SpanPlace } from './trace-ids';
import { Tracer, type EndedSpan } from './tracer';

/** Spans that wait for their export. Further ones are dropped, and the log says so. */
const MAX_WAITING_SPANS = 4_096;
const MAX_BATCH_SPANS = 512;
const EXPORT_EVERY_MS = 1_000;
const EXPORT_TIMEOUT_MS = 5_000;
const CLOSE_LIMIT_MS = 3_000;
const MAX_ATTRIBUTE_CHARS = 256;
/** The first 32 bits of a trace id's random half decide whether it is kept. */
const DECIDING_FROM = 16;
const DECIDING_CHARS = 8;
const DECIDING_RANGE = 2 ** 32;

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
} as const;

/** OpenTelemetry's SDK asks for ids when a span starts. Ours exist before: they were sent on already. */
class GivenIds {
  next: SpanPlace | null = null;

  generateTraceId(): string {
    return this.next?.traceId ?? newTraceId();
  }

  generateSpanId(): string {
    return this.next?.spanId ?? newSpanId();
  }
}

/** Sends spans to a receiver by OTLP over HTTP, in batches and in the background. */
export class OtlpTracer extends Tracer {
  readonly slowMs: number;
  private readonly ratio: number;
  private readonly ids = new GivenIds();
  private readonly provider: TracerProvider;
  private readonly spans: ReturnType<TracerProvider['getTracer']>;

  constructor({ url, service, ratio, slowMs }: { url: string; service: string; ratio: number; slowMs: number }) {
    super();
    this.ratio = ratio;
    this.slowMs = slowMs;
    const log = logger('tracing');
    const warn = (message: string): void => log.warn({ reason: message }, 'traces');
    const logLevel = DiagLogLevel.WARN;
    diag.setLogger(
      { error: warn, warn, info() {}, debug() {}, verbose() {} },
      { logLevel, suppressOverrideMessage: true },
    );
    this.provider = new TracerProvider({
      resource: resourceFromAttributes({ 'service.name': `tollgate-${service}`, 'service.namespace': 'tollgate' }),
      // Whether a trace is kept is decided before.
      sampler: new AlwaysOnSampler(),
      idGenerator: this.ids,
      spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_CHARS },
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: new OTLPTraceExporter({ url, timeoutMillis: EXPORT_TIMEOUT_MS }),
          maxQueueSize: MAX_WAITING_SPANS,
          maxExportBatchSize: MAX_BATCH_SPANS,
          scheduledDelayMillis: EXPORT_EVERY_MS,
          exportTimeoutMillis: EXPORT_TIMEOUT_MS,
        }),
      ],
    });
    this.spans = this.provider.getTracer('tollgate');
  }

  keepsNew(): boolean {
    return Math.random() < this.ratio;
  }

  keeps(traceId: string): boolean {
    return parseInt(traceId.slice(DECIDING_FROM, DECIDING_FROM + DECIDING_CHARS), 16) < this.ratio * DECIDING_RANGE;
  }

  record({ name, kind, place, parentSpanId, startMs, endMs, attributes, events = [], error = null }: EndedSpan): void {
    const parent =
      parentSpanId === null
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, {
            traceId: place.traceId,
            spanId: parentSpanId,
            traceFlags: TraceFlags.SAMPLED,
            isRemote: true,
          });
    this.ids.next = place;
    const span = this.spans.startSpan(name, { kind: KINDS[kind], startTime: startMs, attributes }, parent);
    this.ids.next = null;
    for (const event of events) span.addEvent(event.name, event.atMs);
    if (error !== null) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
    span.end(Math.max(startMs, endMs));
  }

  async close(): Promise<void> {
    await settlesWithin(CLOSE_LIMIT_MS, this.provider.shutdown());
  }
}
