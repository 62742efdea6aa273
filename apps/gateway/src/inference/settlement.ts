import type { AdmissionClient } from '@tollgate/admission';
import { type Outcome, type TokenCounts, type UsageEvent } from '@tollgate/contracts';
import { Counter, logger, metrics } from '@tollgate/runtime';
import type { UsageEmitter } from '../usage/emitter';
import { toUsageEvent } from '../usage/usage-event';
import type { Job } from './job';
import { interrupted } from './refusals';

const overruns = new Counter({
  name: 'tollgate_overrun_requests_total',
  help: 'Requests for which a backend reported more than the hold: the difference is the operator’s loss.',
  registers: [metrics],
});
const lostHolds = new Counter({
  name: 'tollgate_lost_holds_total',
  help: 'Requests whose hold was gone before they could be settled.',
  registers: [metrics],
});
const withoutHolds = new Counter({
  name: 'tollgate_settled_without_hold_total',
  help: 'Requests whose hold an emptied store had lost: their usage event was published before their answer ended.',
  registers: [metrics],
});

/** The end of a hold: settled at what was delivered, or void. */
export class Settlements {
  private readonly log = logger('gateway');

  constructor(
    private readonly client: AdmissionClient,
    private readonly emitter: UsageEmitter,
  ) {}

  /**
   * Settles; the event that is returned is durable and is what the client may be told. Throws InferenceError when there is no hold any more (its deadline passed): then nothing
   * more may be delivered, and UnavailableError when the store does not answer: then the hold's record stands and will be charged at its deadline.
   */
  async settle(
    job: Job,
    { tokens, estimated, outcome }: { tokens: TokenCounts; estimated: boolean; outcome: Outcome },
  ): Promise<{ event: UsageEvent; published: boolean }> {
    const event = toUsageEvent(job.draft, {
      tokens,
      estimated,
      outcome,
      holdNanos: job.hold.holdNanos,
      endedMs: Date.now(),
    });
    if (event.overrunNanos !== '0') overruns.inc();
    this.client.untrack(job.draft.id);
    const result = await this.client.settle({ event, life: job.hold.life });
    if (result.kind === 'settled' && !(result.repeated && result.event.outcome === 'expired'))
      return { event: result.event, published: false };
    if (result.kind === 'lost') {
      // No hold remembers it, so metering must have it. Its id is the request's: whatever else may tell of it, it is charged once.
      await this.emitter.publish(event);
      withoutHolds.inc();
      return { event, published: true };
    }
    lostHolds.inc();
    this.log.warn(job.logged, 'the hold was gone before the request could be settled');
    throw interrupted();
  }

  /** Gives the hold back. When the store does not answer, its deadline does. */
  async void(job: Job): Promise<void> {
    const { id, tenantId } = job.draft;
    this.client.untrack(id);
    try {
      await this.client.void({ id, tenantId });
    } catch (error) {
      this.log.warn({ ...job.logged, err: error }, 'a hold was not given back; it expires by itself');
    }
  }
}
