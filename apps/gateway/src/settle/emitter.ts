import { UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { MessagesRefusedError, type Messages } from '@tollgate/messaging';
import { Counter, delayUntilAborted, failPoint, logger, metrics, withTimeout } from '@tollgate/runtime';

const MAX_BATCH_EVENTS = 500;
/**
 * A quiet emitter waits so long for company: a publication costs as much for one event as for fifty. The debit is late
 * by as much.
 */
const GATHER_MS = 20;
/** Beyond it events are left to the sweeper: the settled hold is their record, so nothing is lost but time. */
const MAX_WAITING_EVENTS = 50_000;
/** Between the tries of a batch while messages are away. */
const RETRY_MS = 500;
/** A client waits for this publication. With the settlement before it, the wait stays below 5 s. */
const MAX_PUBLISH_WAIT_MS = 3_500;

const left = new Counter({
  name: 'tollgate_usage_events_left_to_sweeper_total',
  help: 'Usage events this process gave up, at its end or with too many waiting; the sweeper publishes them',
  registers: [metrics],
});

/**
 * Publishes usage events of settled requests, in batches: what gathers while a call is under way goes with the next
 * one. Never waited for by a request. A batch that fails is tried again until it is published, so that what ran while
 * messages were away is in the ledger as soon as they are back. What only this process remembers is nothing: the
 * settled hold is handed out by the sweeper until the ledger has it, much later if billing was behind.
 */
export class UsageEmitter {
  private waiting: UsageEvent[] = [];
  private running: Promise<void> | null = null;
  private readonly ending = new AbortController();

  constructor(private readonly messages: Messages) {}

  emit(event: UsageEvent): void {
    if (this.waiting.length >= MAX_WAITING_EVENTS) left.inc();
    else this.waiting.push(event);
    this.running ??= this.run();
  }

  /**
   * For an event that only the caller remembers: durable when it returns. UnavailableError: it may not be, or not
   * yet. The caller may publish it again, because metering records each event id once.
   */
  async publish(event: UsageEvent): Promise<void> {
    const late = () => new UnavailableError(`the usage event was not published within ${MAX_PUBLISH_WAIT_MS} ms`);
    await withTimeout(MAX_PUBLISH_WAIT_MS, this.messages.publish('usage-events', [event]), late);
  }

  /** To end with: returns when all that was emitted is published, or was tried once more and is left to the sweeper. */
  async flush(): Promise<void> {
    this.ending.abort();
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    await delayUntilAborted(GATHER_MS, this.ending.signal);
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MAX_BATCH_EVENTS);
      try {
        failPoint('usage-publishing');
        await this.messages.publish('usage-events', batch);
        failPoint('usage-published');
      } catch (error) {
        const last = this.ending.signal.aborted;
        logger('gateway').warn({ err: error, events: batch.length, last }, 'usage was not published');
        if (error instanceof MessagesRefusedError) left.inc(batch.length);
        else if (last) {
          // All of it: each further batch would take as long to fail.
          left.inc(batch.length + this.waiting.splice(0).length);
        } else {
          this.waiting.unshift(...batch);
          await delayUntilAborted(RETRY_MS, this.ending.signal);
        }
      }
    }
    this.running = null;
  }
}
