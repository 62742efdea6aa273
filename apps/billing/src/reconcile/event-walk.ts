import type { AdmissionStore, HoldView } from '@tollgate/admission';
import {
  MAX_DIGEST_EVENTS,
  MAX_LISTED_EVENTS,
  type Difference,
  type EventDigest,
  type EventLine,
} from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { delay } from '@tollgate/runtime';
import { askAgain } from './ask';
import type { Charges, IdRange } from './charges';
import type { Findings } from './findings';

/** After this many looks, an event without a charge counts as lost. A charge on its way has arrived by then. */
const MAX_LOOKS = 8;
const LOOK_AGAIN_MS = 250;
const HOLDS_PAGE = 1_000;

/**
 * Compares every event with its charge. Both have the request's id, so it walks both sides in the order of the ids. It
 * compares sums and an order-independent digest per range, and the ids themselves only where those differ. Memory is
 * one list of MAX_LISTED_EVENTS per side.
 *
 * Metering records an event before billing can have its charge. So a charge without an event is a difference at once;
 * metering is asked a second time, because it was asked first. An event without a charge is a difference if no settled
 * hold owes it to the books and its charge does not arrive within some seconds.
 */
export class EventWalk {
  constructor(
    private readonly services: Requests,
    private readonly admission: AdmissionStore,
    private readonly charges: Charges,
    private readonly findings: Findings,
    private readonly stopped: AbortSignal,
  ) {}

  /** @param from after this id; '' for all */
  async run(from: string): Promise<void> {
    let after = from;
    let next = this.digest(after);
    for (;;) {
      this.stopped.throwIfAborted();
      const events = await next;
      const range: IdRange = { after, until: events.end };
      // While billing sums its side, metering computes the next range.
      if (events.end !== null) next = this.digest(events.end);
      if (!same(events, await this.charges.digest(range))) await this.nameDifferences(range);
      this.findings.events += events.events;
      this.findings.eventsNanos += BigInt(events.costNanos);
      if (events.end === null) return;
      after = events.end;
    }
  }

  private digest(after: string): Promise<EventDigest> {
    const asked = askAgain(this.services, 'metering.events.digest', { after, limit: MAX_DIGEST_EVENTS }, this.stopped);
    // It may fail while the range before it is still compared. The later await reports the failure.
    asked.catch(() => {});
    return asked;
  }

  private async nameDifferences({ after, until }: IdRange): Promise<void> {
    if (this.findings.full) {
      this.findings.add([difference('events = charges', '', 'equal', 'not equal', rangeIds({ after, until }))], true);
      return;
    }
    for (let from = after; ;) {
      this.stopped.throwIfAborted();
      const events = await this.list({ after: from, until });
      await this.comparePage({ after: from, until: events.end ?? until }, events.data);
      if (events.end === null) return;
      from = events.end;
    }
  }

  /** Compares all events of a range with all its charges, page by page. */
  private async comparePage(range: IdRange, events: readonly EventLine[]): Promise<void> {
    const uncharged = new Map(events.map((event) => [event.id, event]));
    for (let after = range.after; ;) {
      const charges = await this.charges.list({ after, until: range.until }, MAX_LISTED_EVENTS);
      const withoutEvent: EventLine[] = [];
      for (const charge of charges) {
        const event = uncharged.get(charge.id);
        uncharged.delete(charge.id);
        if (!event) withoutEvent.push(charge);
        else {
          // A metering of an earlier version gives no details.
          const [expected, actual] = [text(event, event.details), text(charge, event.details && charge.details)];
          if (expected !== actual) this.findings.add([difference(SAME, event.tenantId, expected, actual, [event.id])]);
        }
      }
      this.findings.add(await this.eventsMissing(withoutEvent));
      if (charges.length < MAX_LISTED_EVENTS) break;
      after = charges.at(-1)!.id;
    }
    for (const event of await this.neverCharged([...uncharged.values()])) {
      this.findings.add([
        difference(CHARGED, event.tenantId, `${event.costNanos} nanos charged`, 'no charge', [event.id]),
      ]);
    }
  }

  /** The charges among these that have no event. Metering is asked again, because billing was asked after it. */
  private async eventsMissing(charges: readonly EventLine[]): Promise<Difference[]> {
    const missing = new Map(charges.map((charge) => [charge.id, charge]));
    const [first, last] = [charges[0], charges.at(-1)];
    // `after` is exclusive. Between an id without its last character and the id itself, there are only ids with that
    // beginning.
    for (let after: string | null = first ? first.id.slice(0, -1) : null; after !== null && missing.size > 0;) {
      const events: { data: EventLine[]; end: string | null } = await this.list({ after, until: last!.id });
      for (const event of events.data) missing.delete(event.id);
      after = events.end;
    }
    return [...missing.values()].map(({ id, tenantId, costNanos }) =>
      difference(RECORDED, tenantId, 'an event', `a charge of ${costNanos} nanos without one`, [id]),
    );
  }

  /** The events among these whose charge does not arrive, and which no settled hold owes to the books. */
  private async neverCharged(events: readonly EventLine[]): Promise<EventLine[]> {
    let open = [...events];
    for (let look = 1; open.length > 0; look++) {
      // In this order: a hold goes only once its charge is there.
      const owed = await this.owed(open);
      const charged = await this.charges.ages(open.map((event) => event.id));
      open = open.filter((event) => !owed.has(event.id) && !charged.has(event.id));
      if (look === MAX_LOOKS) break;
      if (open.length > 0) await delay(LOOK_AGAIN_MS);
    }
    return open;
  }

  /**
   * The events among these (ascending by id) with a settled hold. The sweeper redelivers them until the books have
   * them. If the store cannot read the holds of a tenant, no sweep reads them either.
   */
  private async owed(events: readonly EventLine[]): Promise<Set<string>> {
    const owed = new Set<string>();
    for (const [tenantId, ids] of byTenant(events)) {
      const last = ids.at(-1)!;
      for (let after: string | null = ids[0]!.slice(0, -1); after !== null && after < last;) {
        const page = await this.holds(tenantId, after);
        for (const hold of page) if (hold.state === 'settled') owed.add(hold.id);
        after = page.length < HOLDS_PAGE ? null : page.at(-1)!.id;
      }
    }
    return owed;
  }

  /** None if the state of the tenant in the store is unreadable, which is named as a separate difference. */
  private async holds(tenantId: string, after: string): Promise<HoldView[]> {
    try {
      return await this.admission.holds({ tenantId, after, limit: HOLDS_PAGE });
    } catch (error) {
      const [known] = await this.admission.snapshot({ tenantId, limit: 1 });
      if (known?.unreadable === undefined) throw error;
      return [];
    }
  }

  private list({ after, until }: IdRange) {
    const range = { after, limit: MAX_LISTED_EVENTS, ...(until === null ? {} : { until }) };
    return askAgain(this.services, 'metering.events.list', range, this.stopped);
  }
}

const SAME = 'every charge is what its event says';
const CHARGED = 'every event is charged';
const RECORDED = 'every charge has its event';

function same(events: EventDigest, charges: Required<Omit<EventDigest, 'end'>>): boolean {
  const { detailsDigest = charges.detailsDigest } = events;
  return (
    events.events === charges.events &&
    events.costNanos === charges.costNanos &&
    events.digest === charges.digest &&
    detailsDigest === charges.detailsDigest
  );
}

function text({ tenantId, costNanos }: EventLine, details: EventLine['details']): string {
  const more = details && ` with ${details.keyId}, ended ${details.endedAt}, overrun ${details.overrunNanos}`;
  return `${costNanos} nanos of ${tenantId}${more ?? ''}`;
}

function difference(check: string, tenantId: string, expected: string, actual: string, ids: string[]): Difference {
  return { check, tenantId, expected, actual, ids };
}

function rangeIds({ after, until }: IdRange): string[] {
  return [after, until ?? ''].filter((id) => id !== '');
}

function byTenant(events: readonly EventLine[]): Map<string, string[]> {
  const ids = new Map<string, string[]>();
  for (const { tenantId, id } of events) {
    const of = ids.get(tenantId);
    if (of) of.push(id);
    else ids.set(tenantId, [id]);
  }
  return ids;
}
