import type { Charge, UsageEvent } from '@tollgate/contracts';
import { withinOrStored, type AfterCommitPublisher } from '@tollgate/messaging';
import { copyInOn, sqlState, transaction, UNIQUE_VIOLATION } from '@tollgate/postgres';
import { failPoint, logCapped, logger } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import type { Prices } from '../price/prices';
import { rate } from '../price/rate';
import { chargeOf, chargeOfRetiredMonth, releaseOfDismissed, storedCharges } from '../publish/charges';
import { addToBackends, sumByBackend } from '../record/backend-hours';
import { recordCallerRequests } from '../record/caller-requests';
import { dismissedIds, withoutDismissed } from '../record/dismissed';
import { recordEvents, type RatedEvent } from '../record/record-events';
import { addToSums, sumUp } from '../record/roll-up';
import { eventId, quarantine, type Rejected } from '../record/rejected';
import { retiredBefore, mayBeRetired } from '../retain/retired-months';
import { countBatch, countLate, countRefused, type BatchResult } from './metrics';
import { validateUsageEvent } from './read-usage-event';

/** The month of an event was retired after the look. */
const CHECK_VIOLATION = '23514';
/**
 * Attempts to write one batch. Each failure after the first means that another consumer recorded an event of the batch
 * between our look and our write, so a few are enough.
 */
const MAX_TRIES = 10;

/**
 * Consumes usage events. Each is recorded, summed and charged exactly once, however often and to however many consumers
 * it is delivered.
 */
export class UsageConsumer {
  /**
   * Whether to look for repeats before writing. Skipping the look saves a tenth of a batch's time, and costs a failed
   * attempt when there is a repeat. So each batch is expected to be like the last one.
   */
  private expectRepeats = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly prices: Prices,
  ) {}

  /**
   * Consumes one batch, all or nothing. Throws when the database cannot do it now: deliver the batch again.
   *
   * 1. Quarantine bad events, so that they block nobody: events of an invalid form, and those whose cost does not
   *    follow from their tokens and a price that was in force.
   * 2. Keep one event of each id, in ascending order.
   *
   * Then, in one transaction:
   *
   * 3. Leave out those that a person has dismissed, and let billing release their holds, again at each repeat. Record
   *    the new events. The primary key ensures that they are new.
   * 4. Add to the sums, for the new events only.
   * 5. Put the charges into the outbox, unless step 6 follows.
   *
   * After the commit:
   *
   * 6. Publish the charges, if they are not published or stored yet.
   *
   * @param publisher only for events that are delivered again unless this call returns: they are acknowledged after it
   */
  async consume(messages: readonly unknown[], publisher?: AfterCommitPublisher): Promise<BatchResult> {
    const { rated, rejected } = await this.sortOut(messages);
    const { fresh, retired, quarantined, unpublished } = await this.commit(onePerId(rated), rejected, publisher);
    failPoint('recorded');
    report(quarantined);
    reportRetired(retired);
    const [recorded, refused] = [fresh.length, quarantined.length];
    const result = { recorded, repeated: messages.length - recorded - refused, rejected: refused };
    const chargedNanos = fresh.reduce((sum, { chargeNanos }) => sum + chargeNanos, 0n);
    countBatch(result, chargedNanos);
    await publisher?.publish('charges', unpublished);
    return result;
  }

  private async sortOut(messages: readonly unknown[]): Promise<{ rated: RatedEvent[]; rejected: Rejected[] }> {
    const { valid, rejected } = sortByForm(messages);
    let sorted = sortByPrice(valid, this.prices);
    if (sorted.rejected.some(({ wrong }) => wrong === 'price') && (await this.prices.lookAgain()))
      sorted = sortByPrice(valid, this.prices);
    return { rated: sorted.rated, rejected: [...rejected, ...sorted.rejected] };
  }

  private async commit(
    rated: readonly RatedEvent[],
    rejected: readonly Rejected[],
    publisher: AfterCommitPublisher | undefined,
  ): Promise<Recorded> {
    for (let attempt = 1; ; attempt++) {
      const look = this.expectRepeats || attempt > 1 || rated.some(({ event }) => mayBeRetired(event.id));
      try {
        const recorded = await transaction(this.dataSource, (tx) => record(tx, rated, rejected, look, publisher));
        this.expectRepeats = recorded.fresh.length + recorded.retired.length < rated.length;
        return recorded;
      } catch (error) {
        const again = [UNIQUE_VIOLATION, CHECK_VIOLATION].includes(sqlState(error) ?? '');
        if (!again || attempt >= MAX_TRIES) throw error;
      }
    }
  }
}

interface Recorded {
  /** Events that are new. */
  fresh: readonly RatedEvent[];
  /** Events of retired months, which were not recorded before or were dropped since. */
  retired: readonly RatedEvent[];
  /** Events that were quarantined. */
  quarantined: readonly Rejected[];
  /** Charges that must be published after the commit. */
  unpublished: readonly Charge[];
}

/**
 * Steps 3 to 5. Rejects with UNIQUE_VIOLATION if an event was recorded already, and with CHECK_VIOLATION if its month
 * is retired, when the look for them was skipped or too early.
 */
async function record(
  tx: EntityManager,
  rated: readonly RatedEvent[],
  rejected: readonly Rejected[],
  look: boolean,
  publisher: AfterCommitPublisher | undefined,
): Promise<Recorded> {
  // Everything about a recorded event is a repeat, even if it would be refused.
  const refusedIds = rejected.flatMap(({ value, wrong }) => (wrong === 'form' ? [] : [(value as UsageEvent).id]));
  // Before the look at recorded events, so that what was recorded before its dismissal is found there.
  const dismissedBefore = await dismissedIds(tx, rated, rejected);
  const ids = [...refusedIds, ...dismissedBefore, ...(look ? rated.map(({ event }) => event.id) : [])];
  // Most repeats come from the sweeper, which lacks the ledger's confirmation. The charge is published again in case it
  // was lost (a restored backup). Billing counts it once.
  const again = ids.length > 0 ? await storedCharges(tx, ids) : [];
  const known = new Set(again.map(({ id }) => id));
  const refused = rejected.filter(({ value, wrong }) => wrong === 'form' || !known.has((value as UsageEvent).id));
  const unknown = known.size === 0 ? rated : rated.filter(({ event }) => !known.has(event.id));
  // Read after the events: a month that is dropped in between was retired before.
  const retiredUntil = look ? await retiredBefore(tx) : '';
  const retired = unknown.filter(({ event }) => event.id < retiredUntil);
  const open = retired.length === 0 ? unknown : unknown.filter(({ event }) => event.id >= retiredUntil);
  const isDismissed = (id: string) => dismissedBefore.has(id) && !known.has(id);
  const { fresh, rejected: quarantined, dismissed } = withoutDismissed(open, refused, isDismissed);
  if (quarantined.length > 0) await quarantine(tx, quarantined);
  if (fresh.length + again.length + retired.length + dismissed.length === 0)
    return { fresh, retired, quarantined, unpublished: [] };
  const recorded = fresh.length > 0 ? recordEvents(await copyInOn(tx), fresh) : undefined;
  // Computed while PostgreSQL copies.
  const sums = sumUp(fresh);
  const backends = sumByBackend(fresh.map(({ event }) => event));
  const charges = [
    ...fresh.map(chargeOf),
    ...again,
    ...retired.map(chargeOfRetiredMonth),
    ...dismissed.map(releaseOfDismissed),
  ];
  await recorded;
  if (fresh.length > 0) {
    await addToSums(tx, sums);
    await addToBackends(tx, backends);
    await recordCallerRequests(
      tx,
      fresh.map(({ event }) => event),
    );
  }
  const unpublished = await withinOrStored(publisher, tx, 'charges', charges);
  failPoint('recording');
  return { fresh, retired, quarantined, unpublished };
}

function sortByForm(messages: readonly unknown[]): { valid: UsageEvent[]; rejected: Rejected[] } {
  const nowMs = Date.now();
  const valid: UsageEvent[] = [];
  const rejected: Rejected[] = [];
  for (const value of messages) {
    const reason = validateUsageEvent(value, nowMs);
    if (reason === null) valid.push(value as UsageEvent);
    else rejected.push({ value, reason, wrong: 'form' });
  }
  return { valid, rejected };
}

function sortByPrice(events: readonly UsageEvent[], prices: Prices): { rated: RatedEvent[]; rejected: Rejected[] } {
  const rated: RatedEvent[] = [];
  const rejected: Rejected[] = [];
  for (const event of events) {
    const rating = rate(event, prices);
    if ('chargeNanos' in rating) rated.push({ event, ...rating });
    else
      rejected.push({
        value: event,
        ...rating,
        ...(rating.wrong === 'price' && { priceVersion: event.price.version }),
      });
  }
  return { rated, rejected };
}

/** The first event of each id, ascending by id. */
function onePerId(rated: readonly RatedEvent[]): RatedEvent[] {
  const byId = new Map<string, RatedEvent>();
  for (const one of rated) if (!byId.has(one.event.id)) byId.set(one.event.id, one);
  return [...byId.values()].sort((a, b) => (a.event.id < b.event.id ? -1 : 1));
}

function reportRetired(retired: readonly RatedEvent[]): void {
  countLate(retired.length);
  for (const { event } of retired)
    logCapped(logger('metering'), 'warn', { eventId: event.id }, 'usage of a retired month was not recorded');
}

function report(rejected: readonly Rejected[]): void {
  for (const { wrong } of rejected) countRefused(wrong);
  for (const { value, reason } of rejected) {
    const about = { reason, eventId: eventId(value) };
    logCapped(logger('metering'), 'error', about, 'usage event quarantined in rejected_event');
  }
}
