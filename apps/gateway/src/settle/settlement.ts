import { Injectable } from '@nestjs/common';
import { AdmissionClient, type ClaimAnswer, type Settlement } from '@tollgate/admission';
import { costNanos, type Outcome, type TokenCounts, UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { Counter, logger, metrics } from '@tollgate/runtime';
import { UsageEmitter } from './emitter';
import { LateSettlements } from './late-settlements';
import { UnbilledReports } from './unbilled-reports';
import { type AnswerDetails, toUsageEvent } from './usage-event';
import type { HeldRequest } from './held-request';
import { lifeOf } from './request-life';
import { unbilledWork } from './unbilled-work';

const overruns = new Counter({
  name: 'tollgate_overrun_requests_total',
  help: 'Requests for which a backend reported more than was held; the operator bears the difference',
  registers: [metrics],
});
const overrunNanos = new Counter({
  name: 'tollgate_overrun_nanos_total',
  help: 'Cost that backends reported beyond the hold, in nanos of the currency unit; the operator bears it',
  registers: [metrics],
});
const settledNanos = new Counter({
  name: 'tollgate_settled_nanos_total',
  help: 'Cost at which this gateway settled requests, in nanos of the currency unit',
  registers: [metrics],
});
const lostHolds = new Counter({
  name: 'tollgate_lost_holds_total',
  help: 'Requests whose hold was gone before they could be settled',
  registers: [metrics],
});
const withoutHolds = new Counter({
  name: 'tollgate_settled_without_hold_total',
  help: 'Requests charged by a usage event before their answer ended, because an emptied store had lost their hold',
  registers: [metrics],
});

const settledLate = new Counter({
  name: 'tollgate_settled_late_total',
  help: 'Streams that ended while the admission store was unavailable and were settled when it was back',
  registers: [metrics],
});

/** The hold of a running request, which may be raised after its end. */
export interface RaisableHold {
  readonly heldNanos: bigint;
  /** Raises it to the cost, as far as the credit allows. Returns the amount held afterwards. */
  raiseTo(costNanos: bigint): Promise<bigint>;
}

/** The usage that a request is settled at, and how its answer ended. */
export interface UsageToSettle {
  readonly tokens: TokenCounts;
  readonly estimated: boolean;
  readonly details: AnswerDetails;
  readonly outcome: Outcome;
  /** By `performance.now()`. Null for a plain answer and for a stream without output. */
  readonly firstTokenAtMs: number | null;
  /** How often the hold was extended. */
  readonly extensions: number;
  /** The hold of a stream. Null: a plain answer's hold is as it was admitted. */
  readonly allowance: RaisableHold | null;
  /** A backend reported usage, so the cost may exceed the hold. Our own count never does. */
  readonly isReported: boolean;
}

/** The answer to keep with the settlement of a claim. Never rejects. */
export type AnswerOf = (event: UsageEvent) => Promise<ClaimAnswer>;

/** A settlement that is durable. */
export interface Settled {
  /** The durable record, which the client's usage repeats. */
  readonly event: UsageEvent;
  /** Published before the answer ended, so not emitted again. */
  readonly isPublished: boolean;
}

/** The end of a hold: raised, settled at what was delivered and emitted, or void. */
@Injectable()
export class Settlements {
  private readonly log = logger('gateway');
  private readonly late: LateSettlements;

  constructor(
    private readonly client: AdmissionClient,
    private readonly emitter: UsageEmitter,
    private readonly unbilled: UnbilledReports,
  ) {
    this.late = new LateSettlements((settlement, logged) => this.settleLate(settlement, logged));
  }

  /** For the shutdown: tries late settlements once more, then publishes all usage or leaves it to the sweeper. */
  async flush(): Promise<void> {
    await Promise.all([this.late.flush(), this.emitter.flush(), this.unbilled.flush()]);
    // The usage of the late settlements.
    await this.emitter.flush();
  }

  /**
   * Raises the hold where necessary, and settles. Null when the hold no longer exists (its deadline passed): then
   * nothing more may be delivered. Throws UnavailableError when the store does not answer. A stream is then settled
   * late, because the client has most of it. Other answers were not delivered, so their holds expire at their deadline.
   * @param answerOf of a request with a claim
   */
  async settle(request: HeldRequest, delivered: UsageToSettle, answerOf: AnswerOf | null): Promise<Settled | null> {
    const { draft, hold } = request;
    const cost = costNanos(delivered.tokens, draft.price);
    const heldNanos = await this.raise(request, delivered, cost);
    const event = eventOf(request, delivered, cost, heldNanos);
    if (event.overrunNanos !== '0') {
      overruns.inc();
      overrunNanos.inc(Number(event.overrunNanos));
    }
    const settlement: Settlement = { event, storeEpoch: hold.storeEpoch };
    if (answerOf) settlement.answer = await answerOf(event);
    const settled = await this.record(settlement).catch((error: unknown) => {
      this.unbilled.note(unbilledWork(request, null));
      if (draft.stream && error instanceof UnavailableError)
        this.late.add({ ...settlement, event: late(event) }, request.logged);
      throw error;
    });
    this.unbilled.note(unbilledWork(request, settled && settled.event));
    if (!settled) this.log.warn(request.logged, 'the hold was gone before the request could be settled');
    return settled;
  }

  /**
   * Returns what is held afterwards. The heartbeat renews the hold until it is raised. If the raise fails, the hold
   * must expire.
   */
  private async raise({ draft, hold }: HeldRequest, of: UsageToSettle, cost: bigint): Promise<bigint> {
    const { allowance, isReported } = of;
    try {
      if (allowance === null) return hold.holdNanos;
      return isReported ? await allowance.raiseTo(cost) : allowance.heldNanos;
    } finally {
      this.client.untrack(draft.id);
    }
  }

  /**
   * After the last byte: publishes the usage in the background. If it is lost, the settled hold is its record.
   * @param traceparent of a request whose trace is kept
   */
  emit({ event, isPublished }: Settled, traceparent: string | null = null): void {
    if (!isPublished) this.emitter.emit(traceparent === null ? event : { ...event, traceparent });
  }

  /** Null: the hold no longer exists, and nothing was recorded. */
  private async record(settlement: Settlement): Promise<Settled | null> {
    const result = await this.client.settle(settlement);
    if (result.kind === 'settled' && !(result.repeated && result.event.outcome === 'expired')) {
      settledNanos.inc(Number(result.event.costNanos));
      return { event: result.event, isPublished: false };
    }
    if (result.kind === 'lost') {
      // No hold records it, so metering must have it now. Its id is the request's, so it is charged once however many
      // reports arrive.
      await this.emitter.publish(settlement.event);
      withoutHolds.inc();
      settledNanos.inc(Number(settlement.event.costNanos));
      return { event: settlement.event, isPublished: true };
    }
    lostHolds.inc();
    return null;
  }

  private async settleLate(settlement: Settlement, logged: object): Promise<void> {
    const settled = await this.record(settlement);
    if (settled) {
      // The unanswered settlement may have been recorded. Then the recorded event does not say that it was late.
      this.emit({ ...settled, event: late(settled.event) });
      settledLate.inc();
      return;
    }
    // The sweeper was first, or the unanswered settlement had succeeded and was charged since.
    this.log.warn(logged, 'the hold was gone before the stream could be settled late');
  }

  /** Voids the hold. When the store does not answer, the hold expires at its deadline. */
  async void(request: HeldRequest): Promise<void> {
    const { id, tenantId } = request.draft;
    this.client.untrack(id);
    this.unbilled.note(unbilledWork(request, null));
    try {
      await this.client.void({ id, tenantId });
    } catch (error) {
      this.log.warn({ ...request.logged, err: error }, 'a hold was not voided; it expires at its deadline');
    }
  }
}

/** The usage event, at the cost of the tokens, as far as it is held. */
function eventOf(request: HeldRequest, of: UsageToSettle, cost: bigint, heldNanos: bigint): UsageEvent {
  const { draft, hold, begun, failed, asked, admittedAtMs } = request;
  const { tokens, estimated, details, outcome, firstTokenAtMs, extensions } = of;
  return toUsageEvent(draft, {
    tokens,
    reasoningTokens: details.completion?.['reasoning_tokens'] ?? 0,
    cost,
    estimated,
    outcome,
    backend: begun.at(-1),
    life: lifeOf({
      admittedUnder: hold.admittedUnder,
      heldNanos: hold.holdNanos,
      endNanos: heldNanos,
      extensions,
      firstMs: firstTokenAtMs === null ? null : Math.max(0, Math.round(firstTokenAtMs - admittedAtMs)),
      failed,
      asked,
    }),
    holdNanos: request.payable(heldNanos),
    endedMs: Date.now(),
  });
}

/** The event of a stream that ended with an error, because the store did not answer. */
function late(event: UsageEvent): UsageEvent {
  return event.life ? { ...event, life: { ...event.life, late: true } } : event;
}
