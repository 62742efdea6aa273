import type { InferenceKind, Outcome, UsageEvent } from '@tollgate/contracts';
import { newSpanId, newTraceId, type SpanPlace, type Tracer, writeTraceparent } from '@tollgate/runtime';
import { parentIn, type TraceContext } from '../../http/trace-context';
import { INFERENCE_ERRORS } from '../../inference-errors';
import type { RequestOutcome } from './request-metrics';

/** The stages of a request, in their order. Each ends at a time that the pipeline notes. */
const STAGES = ['authenticate', 'read', 'admit', 'upstream', 'settle'] as const;
export type Stage = (typeof STAGES)[number];

/** The `gen_ai.operation.name` of each kind. */
const OPERATIONS: Record<InferenceKind, string> = {
  chat: 'chat',
  completion: 'text_completion',
  embedding: 'embeddings',
};
/** Outcomes of served requests that are our fault or a backend's. */
const FAILED: ReadonlySet<RequestOutcome> = new Set<Outcome>(['upstream_error', 'expired']);
const FIRST_SERVER_ERROR = 500;

/** What a span says of the request. Never a prompt, an answer, or a header of a client. */
export interface TracedRequest {
  kind: InferenceKind;
  /** Our id, unique. */
  id: string;
  /** Public model id; empty if it is not known. */
  model: string;
  owner: { readonly tenantId: string; readonly keyId: string } | null;
}

/** The end of a served request. */
export interface TracedEnd {
  event: UsageEvent;
  /** By `performance.now()`. */
  firstTokenAtMs: number | null;
}

/**
 * The times of one request, from which its spans are made when it has ended. A request is kept if its trace is, or if
 * it failed by our fault or was slow. Refusals are not kept for themselves: a client can cause any number of them.
 */
export class RequestTrace {
  private readonly beganMs = performance.now();
  private readonly endedAtMs = new Map<Stage, number>();
  /** The context for the next services and the log: ours if the trace is kept, else the caller's own. */
  readonly context: TraceContext | null;
  private readonly place: SpanPlace | null = null;
  private upstreamSpanId = '';

  constructor(
    private readonly tracer: Tracer,
    private readonly caller: TraceContext | null,
  ) {
    this.context = caller;
    if (!(caller ? tracer.keeps(caller.traceId) : tracer.keepsNew())) return;
    this.place = this.newPlace();
    const traceparent = writeTraceparent({ traceId: this.place.traceId, spanId: this.upstreamSpanId });
    // The caller's `tracestate` goes on.
    const headers = ['traceparent', traceparent, ...(caller?.headers.slice(2) ?? [])];
    this.context = { traceId: this.place.traceId, headers };
  }

  ended(stage: Stage): void {
    this.endedAtMs.set(stage, performance.now());
  }

  /** Records the spans of a request that has ended. Returns its `traceparent` for its usage event; null: not kept. */
  finish(request: TracedRequest, outcome: RequestOutcome, end: TracedEnd | null): string | null {
    const nowMs = performance.now();
    const status =
      outcome in INFERENCE_ERRORS ? INFERENCE_ERRORS[outcome as keyof typeof INFERENCE_ERRORS].status : 200;
    const failed = (end ? FAILED.has(outcome) : status >= FIRST_SERVER_ERROR) ? outcome : null;
    if (!this.place && failed === null && nowMs - this.beganMs < this.tracer.slowMs) return null;
    const place = this.place ?? this.newPlace();
    this.record(place, nowMs, request, { outcome, status, failed, end });
    return writeTraceparent(place);
  }

  private newPlace(): SpanPlace {
    this.upstreamSpanId = newSpanId();
    return { traceId: this.caller?.traceId ?? newTraceId(), spanId: newSpanId() };
  }

  private record(
    place: SpanPlace,
    nowMs: number,
    { kind, id, model, owner }: TracedRequest,
    { outcome, status, failed, end }: { outcome: string; status: number; failed: string | null; end: TracedEnd | null },
  ): void {
    const { tracer } = this;
    let fromMs = this.beganMs;
    for (const stage of STAGES) {
      const toMs = this.endedAtMs.get(stage);
      if (toMs === undefined) break;
      const isCall = stage === 'upstream';
      tracer.record({
        name: isCall ? `${OPERATIONS[kind]} ${model}` : stage,
        kind: isCall ? 'client' : 'internal',
        place: { traceId: place.traceId, spanId: isCall ? this.upstreamSpanId : newSpanId() },
        parentSpanId: place.spanId,
        startMs: epochMs(fromMs),
        endMs: epochMs(toMs),
        attributes: isCall ? ofCall(kind, model, end) : {},
        events:
          isCall && end?.firstTokenAtMs != null ? [{ name: 'first_token', atMs: epochMs(end.firstTokenAtMs) }] : [],
        error: isCall && end === null ? outcome : null,
      });
      fromMs = toMs;
    }
    tracer.record({
      name: `POST ${OPERATIONS[kind]}`,
      kind: 'server',
      place,
      parentSpanId: this.caller && parentIn(this.caller),
      startMs: epochMs(this.beganMs),
      endMs: epochMs(nowMs),
      attributes: {
        'http.request.method': 'POST',
        // A client that left before the answer got none.
        ...((end || outcome !== 'client_closed') && { 'http.response.status_code': status }),
        'gen_ai.operation.name': OPERATIONS[kind],
        'gen_ai.request.model': model,
        'tollgate.request.id': id,
        'tollgate.outcome': outcome,
        ...(owner && { 'tollgate.tenant.id': owner.tenantId, 'tollgate.key.id': owner.keyId }),
        ...(end && { 'tollgate.cost.nanos': end.event.costNanos }),
      },
      error: failed,
    });
  }
}

/** By the conventions for calls of generative models. The wire format is OpenAI's, whatever engine speaks it. */
function ofCall(kind: InferenceKind, model: string, end: TracedEnd | null): Record<string, string | number> {
  const common = {
    'gen_ai.operation.name': OPERATIONS[kind],
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': model,
  };
  if (!end) return common;
  const { promptTokens, completionTokens, backend } = end.event;
  return {
    ...common,
    'gen_ai.usage.input_tokens': promptTokens,
    'gen_ai.usage.output_tokens': completionTokens,
    ...(backend !== undefined && { 'tollgate.backend': backend }),
  };
}

const epochMs = (atMs: number): number => performance.timeOrigin + atMs;
