import type { AdmissionClient, Settlement } from '@tollgate/admission';
import { costNanos, type Outcome, type TokenCounts, UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { Counter, logger, metrics } from '@tollgate/runtime';
import type { UsageEmitter } from './emitter';
import { LateSettlements } from './late-settlements';
import type { UnbilledReports } from './unbilled-reports';
import { toUsageEvent } from './usage-event';
import type { HeldRequest } from './held-request';
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

/** What a request is settled at. */
export interface Delivered {
  readonly tokens: TokenCounts;
  readonly estimated: boolean;
  readonly outcome: Outcome;
  /**
   * Raises the hold to the cost, where a backend's report may be above it, and as far as the credit goes. Resolves with
   * what is held then.
   */
  readonly raise: (costNanos: bigint) => Promise<bigint>;
}

/** A settlement that is durable. */
export interface Settled {
  /** The record that stands: what the client may be told. */
  readonly event: UsageEvent;
  /** Metering has it already. */
  readonly isPublished: boolean;
}

/** The end of a hold: raised, settled at what was delivered and emitted, or void. */
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
   * Raises the hold where it must, and settles. Null when there is no hold any more (its deadline passed): then nothing
   * more may be delivered. Throws UnavailableError when the store does not answer: a stream, of which the client has
   * most, is settled late then; what is not streamed was not delivered, and its hold is given back at its deadline.
   */
  async settle(request: HeldRequest, { tokens, estimated, outcome, raise }: Delivered): Promise<Settled | null> {
    const { draft, hold, begun } = request;
    const cost = costNanos(tokens, draft.price);
    // The hold lives until it is raised. Should that fail, it ends by itself: renewed, it would live as long as the
    // process.
    const holdNanos = await raise(cost).finally(() => this.client.untrack(draft.id));
    const backend = begun.at(-1);
    const event = toUsageEvent(draft, { tokens, cost, estimated, outcome, backend, holdNanos, endedMs: Date.now() });
    if (event.overrunNanos !== '0') overruns.inc();
    const settlement = { event, storeEpoch: hold.storeEpoch };
    const settled = await this.record(settlement).catch((error: unknown) => {
      this.unbilled.note(unbilledWork(request, null));
      if (draft.stream && error instanceof UnavailableError) this.late.add(settlement);
      throw error;
    });
    this.unbilled.note(unbilledWork(request, settled && settled.event));
    if (!settled) this.log.warn(request.logged, 'the hold was gone before the request could be settled');
    return settled;
  }

  /** After the last byte: metering hears of it in the background. Should that be lost, the settled hold remembers. */
  emit({ event, isPublished }: Settled): void {
    if (!isPublished) this.emitter.emit(event);
  }

  /** Null: there is no hold any more, and nothing was recorded. */
  private async record(settlement: Settlement): Promise<Settled | null> {
    const result = await this.client.settle(settlement);
    if (result.kind === 'settled' && !(result.repeated && result.event.outcome === 'expired'))
      return { event: result.event, isPublished: false };
    if (result.kind === 'lost') {
      // No hold remembers it, so metering must have it. Its id is the request's: whatever else may tell of it, it is
      // charged once.
      await this.emitter.publish(settlement.event);
      withoutHolds.inc();
      return { event: settlement.event, isPublished: true };
    }
    lostHolds.inc();
    return null;
  }

  private async settleLate(settlement: Settlement): Promise<void> {
    const settled = await this.record(settlement);
    if (settled) {
      this.emit(settled);
      settledLate.inc();
      return;
    }
    // The sweeper was first; or the settlement that was not answered had been taken, and was charged since.
    this.log.warn({ id: settlement.event.id }, 'the hold was gone before the stream could be settled late');
  }

  /** Gives the hold back. When the store does not answer, its deadline does. */
  async void(request: HeldRequest): Promise<void> {
    const { id, tenantId } = request.draft;
    this.client.untrack(id);
    this.unbilled.note(unbilledWork(request, null));
    try {
      await this.client.void({ id, tenantId });
    } catch (error) {
      this.log.warn({ ...request.logged, err: error }, 'a hold was not given back; it expires by itself');
    }
  }
}
