import type { InferenceKind, UsageEvent } from '@tollgate/contracts';
import { type RequestOutcome, seriesOf } from './request-metrics';
import type { RequestTrace, Stage, TracedEnd, TracedRequest } from './request-trace';

/** A request while it runs. The owner and the trace are set as they become known. */
interface ReportedRequest {
  readonly id: string;
  readonly owner: TracedRequest['owner'];
  /** Null: there is no tracing. */
  readonly traced: RequestTrace | null;
}

/**
 * Reports how one request runs and ends, to the metrics and, if there is one, to the trace. Takes about 1 µs a request.
 */
export class RequestReport {
  private readonly beganMs = performance.now();
  /** Empty until the model is found in the catalog. */
  private model = '';

  constructor(
    private readonly kind: InferenceKind,
    private readonly request: ReportedRequest,
  ) {}

  ended(stage: Stage): void {
    this.request.traced?.ended(stage);
  }

  found(model: string): void {
    this.model = model;
  }

  refused(outcome: RequestOutcome): void {
    seriesOf(this.model).count(outcome);
    this.finish(this.model, outcome, null);
  }

  /** It got the kept answer of an earlier request to `model`. */
  replayed(model: string): void {
    seriesOf(model).count('replayed');
    this.finish(model, 'replayed', null);
  }

  /**
   * Returns the `traceparent` for its usage event. Null: its trace is not kept.
   * @param firstTokenAtMs by `performance.now()`; null for a plain answer and for a stream without output
   */
  served(event: UsageEvent, firstTokenAtMs: number | null): string | null {
    // The metrics name the model that served, the trace names the model that was asked for.
    const series = seriesOf(event.model);
    series.count(event.outcome);
    series.countTokens(event);
    if (event.backend !== undefined) series.countBackend(event.backend, event);
    series.duration.observe((performance.now() - this.beganMs) / 1_000);
    if (firstTokenAtMs !== null) series.firstToken.observe((firstTokenAtMs - this.beganMs) / 1_000);
    return this.finish(this.model, event.outcome, { event, firstTokenAtMs });
  }

  private finish(model: string, outcome: RequestOutcome, end: TracedEnd | null): string | null {
    const { traced, id, owner } = this.request;
    return traced === null ? null : traced.finish({ kind: this.kind, id, model, owner }, outcome, end);
  }
}
