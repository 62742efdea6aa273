import type { UsageEvent } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { Counter, failPoint, logger, metrics } from '@tollgate/runtime';

const MAX_BATCH_EVENTS = 500;
/** A quiet emitter waits so long for company: a publication costs as much for one event as for fifty. The debit is late by as much. */
const GATHER_MS = 20;
/** Beyond it events are left to the sweeper: the settled hold is their record, so nothing is lost but seconds. */
const MAX_WAITING_EVENTS = 50_000;

const left = new Counter({
  name: 'tollgate_usage_events_left_to_sweeper_total',
  help: 'Usage events that could not be published at once; the sweeper publishes them from their settled holds.',
  registers: [metrics],
});

/**
 * Publishes usage events of settled requests, in batches: what gathers while a call is under way goes with the next one. Never waited for by a
 * request, and never retried here: the settled hold is handed out again by the sweeper until the ledger has it.
 */
export class UsageEmitter {
  private waiting: UsageEvent[] = [];
  private running: Promise<void> | null = null;

  constructor(private readonly messages: Messages) {}

  emit(event: UsageEvent): void {
    if (this.waiting.length >= MAX_WAITING_EVENTS) left.inc();
    else this.waiting.push(event);
    this.running ??= this.run();
  }

  /** For an event that nothing but the caller remembers: durable when it returns. UnavailableError: it may not be. */
  async publish(event: UsageEvent): Promise<void> {
    await this.messages.publish('usage-events', [event]);
  }

  /** Returns when all that was emitted is published, or left to the sweeper. */
  async flush(): Promise<void> {
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MAX_BATCH_EVENTS);
      try {
        failPoint('usage-publishing');
        await this.messages.publish('usage-events', batch);
        failPoint('usage-published');
      } catch (error) {
        left.inc(batch.length);
        logger('gateway').warn(
          { err: error, events: batch.length },
          'usage events were not published; the sweeper will',
        );
      }
    }
    this.running = null;
  }
}
