import { Injectable } from '@nestjs/common';
import { UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { MessagesRefusedError, Messages } from '@tollgate/messaging';
import { Counter, delayUntilAborted, failPoint, logger, metrics, withTimeout } from '@tollgate/runtime';

const MAX_BATCH_EVENTS = 500;
/** The batching delay: a publication costs as much for one event as for fifty. It delays the debit by the same time. */
const GATHER_MS = 50;
/** Further events are left to the sweeper. The settled hold is their record, so they are only late. */
const MAX_WAITING_EVENTS = 50_000;
/** Between tries of a batch while messages are unavailable. */
const RETRY_MS = 500;
/** A client waits for this publication. With the settlement before it, the wait stays below 5 s. */
const MAX_PUBLISH_WAIT_MS = 3_500;

const left = new Counter({
  name: 'tollgate_usage_events_left_to_sweeper_total',
  help: 'Usage events left to the sweeper, at the end of the process or because too many were waiting',
  registers: [metrics],
});

/**
 * Publishes the usage events of settled requests in batches. Events that arrive during a publication go with the next
 * one. No request waits for it. A failed batch is tried again until it is published, so usage reaches the ledger as
 * soon as messages are available again. An event that this process loses is not lost: the sweeper publishes its settled
 * hold until the ledger has it, though later.
 */
@Injectable()
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
   * For an event without a hold that records it. The event is durable when this returns. After an UnavailableError it
   * may or may not be. The caller may publish it again, because metering records each event id once.
   */
  async publish(event: UsageEvent): Promise<void> {
    const late = () => new UnavailableError(`the usage event was not published within ${MAX_PUBLISH_WAIT_MS} ms`);
    await withTimeout(MAX_PUBLISH_WAIT_MS, this.messages.publish('usage-events', [event]), late);
  }

  /** For the shutdown: returns when every event is published, or was tried once more and is left to the sweeper. */
  async flush(): Promise<void> {
    this.ending.abort();
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) {
      if (this.waiting.length < MAX_BATCH_EVENTS) await delayUntilAborted(GATHER_MS, this.ending.signal);
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
          // All events: each further batch would take as long to fail.
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
