import type { AdmissionClient, Settlement } from '@tollgate/admission';
import { type Outcome, type TokenCounts, UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { Counter, logger, metrics } from '@tollgate/runtime';
import type { UsageEmitter } from '../usage/emitter';
import { LateSettlements } from '../usage/late-settlements';
import type { UnbilledReports } from '../usage/unbilled-reports';
import { toUsageEvent } from '../usage/usage-event';
import type { AdmittedRequest } from './admitted-request';
import { interrupted } from './refusals';
import { unbilledWork } from './unbilled-work';

const overruns = new Counter({
  name: 'tollgate_overrun_requests_total',
  help: 'Requests for which a backend reported more than was held; the operator bears the difference',
  registers: [metrics],
});
const lostHolds = new Counter({
  name: 'tollgate_lost_holds_total',
  help: 'Requests whose hold was gone before they could be settled',
  registers: [metrics],
});
const withoutHolds = new Counter({
  name: 'tollgate_settled_without_hold_total',
  help: 'Requests whose hold an emptied store had lost; they were charged, by a usage event before their answer ended',
  registers: [metrics],
});

const settledLate = new Counter({
  name: 'tollgate_settled_late_total',
  help: 'Streams that ended while the admission store was away; settled at what they delivered when it was back',
  registers: [metrics],
});

/** The end of a hold: settled at what was delivered, or void. */
export class Settlements {
  private readonly log = logger('gateway');
  private readonly late: LateSettlements;

  constructor(
    private readonly client: AdmissionClient,
    private readonly emitter: UsageEmitter,
    private readonly unbilled: UnbilledReports,
  ) {
    this.late = new LateSettlements((settlement) => this.settleLate(settlement));
  }

  /** To end with: what is settled late is tried once more, then all usage is published, or left to the sweeper. */
  async flush(): Promise<void> {
    await Promise.all([this.late.flush(), this.emitter.flush(), this.unbilled.flush()]);
    // What was settled late.
    await this.emitter.flush();
  }

  /**
   * Settles; the event that is returned is durable and is what the client may be told. Throws InferenceError when there is no hold any more (its deadline passed): then nothing
   * more may be delivered, and UnavailableError when the store does not answer: a stream, of which the client has most, is
   * settled late then; what is not streamed was not delivered, and its hold is given back at its deadline.
   */
  async settle(
    admitted: AdmittedRequest,
    { tokens, estimated, outcome }: { tokens: TokenCounts; estimated: boolean; outcome: Outcome },
  ): Promise<{ event: UsageEvent; published: boolean }> {
    const event = toUsageEvent(admitted.draft, {
      tokens,
      estimated,
      outcome,
      backend: admitted.begun.at(-1),
      holdNanos: admitted.hold.holdNanos,
      endedMs: Date.now(),
    });
    if (event.overrunNanos !== '0') overruns.inc();
    this.client.untrack(admitted.draft.id);
    const settlement = { event, life: admitted.hold.life };
    const settled = await this.record(settlement).catch((error: unknown) => {
      this.unbilled.note(unbilledWork(admitted, null));
      if (admitted.request.stream && error instanceof UnavailableError) this.late.add(settlement);
      throw error;
    });
    this.unbilled.note(unbilledWork(admitted, settled && settled.event));
    if (settled) return settled;
    this.log.warn(admitted.logged, 'the hold was gone before the request could be settled');
    throw interrupted();
  }

  /** Null: there is no hold any more, and nothing was recorded. */
  private async record(settlement: Settlement): Promise<{ event: UsageEvent; published: boolean } | null> {
    const result = await this.client.settle(settlement);
    if (result.kind === 'settled' && !(result.repeated && result.event.outcome === 'expired'))
      return { event: result.event, published: false };
    if (result.kind === 'lost') {
      // No hold remembers it, so metering must have it. Its id is the request's: whatever else may tell of it, it is charged once.
      await this.emitter.publish(settlement.event);
      withoutHolds.inc();
      return { event: settlement.event, published: true };
    }
    lostHolds.inc();
    return null;
  }

  private async settleLate(settlement: Settlement): Promise<void> {
    const settled = await this.record(settlement);
    if (settled && !settled.published) this.emitter.emit(settled.event);
    if (settled) return settledLate.inc();
    // The sweeper was first; or the settlement that was not answered had been taken, and was charged since.
    this.log.warn({ id: settlement.event.id }, 'the hold was gone before the stream could be settled late');
  }

  /** Gives the hold back. When the store does not answer, its deadline does. */
  async void(admitted: AdmittedRequest): Promise<void> {
    const { id, tenantId } = admitted.draft;
    this.client.untrack(id);
    this.unbilled.note(unbilledWork(admitted, null));
    try {
      await this.client.void({ id, tenantId });
    } catch (error) {
      this.log.warn({ ...admitted.logged, err: error }, 'a hold was not given back; it expires by itself');
    }
  }
}
