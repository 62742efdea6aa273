import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { query } from '@tollgate/postgres';
import { logger, newSpanId, readTraceparent, type SpanPlace, type Tracer } from '@tollgate/runtime';
import { BillingDataSource } from '../database';
import { BILLING_OPTIONS } from '../options';

/** Charges of kept traces that wait for their posting. Further ones get no span. */
const MAX_WAITING = 1_000;
const LOOK_EVERY_MS = 1_000;
/** Less than a cent may wait for days. */
const FORGOTTEN_AFTER_MS = 60_000;

interface Waiting {
  request: SpanPlace;
  gatheredMs: number;
}

/** A charge as it came; unreadable ones have no valid `traceparent`. */
interface Gathered {
  id?: unknown;
  traceparent?: unknown;
}

/**
 * Records a span for the posting of each charge of a kept trace, from its commit to its debit. The poster may be
 * another replica, so the books are asked: once a second, and only while such a charge waits. Nothing waits for this.
 */
@Injectable()
export class PostingTraces implements BeforeApplicationShutdown {
  private readonly waiting = new Map<string, Waiting>();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(BILLING_OPTIONS) private readonly options: { tracer: Tracer | null },
  ) {}

  /** Call it after the commit. */
  gathered(charges: readonly Gathered[]): void {
    if (!this.options.tracer) return;
    const gatheredMs = Date.now();
    for (const { id, traceparent } of charges) {
      const request = traceparent === undefined ? null : readTraceparent(traceparent);
      if (request && typeof id === 'string' && this.waiting.size < MAX_WAITING)
        this.waiting.set(id, { request, gatheredMs });
    }
    this.lookLater();
  }

  /** Looks once more: the last cents were posted just before. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.looking;
    await this.look();
  }

  private lookLater(): void {
    if (this.timer || this.stopped || this.waiting.size === 0) return;
    this.timer = setTimeout(() => {
      this.looking = this.look().finally(() => {
        this.timer = undefined;
        this.lookLater();
      });
    }, LOOK_EVERY_MS);
  }

  private async look(): Promise<void> {
    if (this.waiting.size === 0) return;
    try {
      const rows = await query<{ id: string; entry_id: string; created_at: Date }>(
        this.dataSource,
        `SELECT c.id, e.id AS entry_id, e.created_at
         FROM charge c
         CROSS JOIN LATERAL (
           SELECT entry_id, to_seq FROM coverage
           WHERE tenant_id = c.tenant_id AND period = c.period AND from_seq <= c.seq
           ORDER BY from_seq DESC LIMIT 1
         ) v
         JOIN journal_entry e ON e.id = v.entry_id
         WHERE c.id = ANY($1) AND v.to_seq >= c.seq`,
        [[...this.waiting.keys()]],
      );
      for (const { id, entry_id, created_at } of rows) this.posted(id, entry_id, created_at.getTime());
    } catch (error) {
      logger('billing').debug({ err: error }, 'postings of traces were not read; they are read again');
    }
    for (const [id, { gatheredMs }] of this.waiting)
      if (Date.now() - gatheredMs > FORGOTTEN_AFTER_MS) this.waiting.delete(id);
  }

  private posted(id: string, entryId: string, postedMs: number): void {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    this.waiting.delete(id);
    const { request, gatheredMs } = waiting;
    this.options.tracer!.record({
      name: 'post',
      kind: 'internal',
      place: { traceId: request.traceId, spanId: newSpanId() },
      parentSpanId: request.spanId,
      startMs: Math.min(gatheredMs, postedMs),
      endMs: postedMs,
      attributes: { 'tollgate.request.id': id, 'tollgate.entry.id': entryId },
    });
  }
}
