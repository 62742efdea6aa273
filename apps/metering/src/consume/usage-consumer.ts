import type { UsageEvent } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { sqlState, transaction } from '@tollgate/postgres';
import { failPoint, logger } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import { rate } from '../price/rate';
import { chargeOf, storedCharges } from '../publish/charges';
import { connectionOf } from '../record/copy-in';
import { addToBackends, sumByBackend } from '../record/backend-hours';
import { recordEvents, type RatedEvent } from '../record/record-events';
import { addToSums, sumUp } from '../record/roll-up';
import { setAside, type Rejected } from '../record/rejected';
import { countBatch, type BatchResult } from './metrics';
import { whyNotUsageEvent } from './read-usage-event';

const UNIQUE_VIOLATION = '23505';
/** The first is without a look for repeats. Each later one that fails means that another consumer recorded an event of the batch between our look and our write. */
const MAX_TRIES = 10;

/** Takes in usage events: each is recorded, summed and charged exactly once, however often and to however many consumers it is delivered. */
export class UsageConsumer {
  /** Whether to look for repeats before writing. Not looking saves a tenth of a batch's time and costs a failed try when there is one; so a batch is taken to be like the last. */
  private expectRepeats = false;

  constructor(private readonly dataSource: DataSource) {}

  /**
   * One batch, all or nothing. Throws when the database cannot do it now: deliver the same again.
   * 1. Bad events aside, so that they hold up nobody. 2. One of each id, ascending. In one transaction: 3. the events that are not recorded yet (the primary key sees to it);
   * 4. the sums, of the new ones only; 5. the charges into the outbox. The caller acknowledges after the commit.
   */
  async consume(messages: readonly unknown[]): Promise<BatchResult> {
    const { valid, rejected } = sortOut(messages);
    const rated = onePerId(valid).map((event): RatedEvent => ({ event, ...rate(event) }));
    const fresh = await this.commit(rated, rejected);
    failPoint('recorded');
    const disagreeing = fresh.filter(({ disagreementNanos }) => disagreementNanos !== null);
    report(rejected, disagreeing);
    const result = {
      recorded: fresh.length,
      repeated: valid.length - fresh.length,
      rejected: rejected.length,
      disagreements: disagreeing.length,
    };
    countBatch(result);
    return result;
  }

  private async commit(rated: readonly RatedEvent[], rejected: readonly Rejected[]): Promise<readonly RatedEvent[]> {
    for (let attempt = 1; ; attempt++) {
      const look = this.expectRepeats || attempt > 1;
      try {
        const fresh = await transaction(this.dataSource, (tx) => record(tx, rated, rejected, look));
        this.expectRepeats = fresh.length < rated.length;
        return fresh;
      } catch (error) {
        if (sqlState(error) !== UNIQUE_VIOLATION || attempt >= MAX_TRIES) throw error;
      }
    }
  }
}

/** Steps 3 to 5; returns the new ones. Rejects with UNIQUE_VIOLATION when one is recorded already and we did not look, or not late enough. */
async function record(
  tx: EntityManager,
  rated: readonly RatedEvent[],
  rejected: readonly Rejected[],
  look: boolean,
): Promise<readonly RatedEvent[]> {
  if (rejected.length > 0) await setAside(tx, rejected);
  if (rated.length === 0) return [];
  const ids = rated.map(({ event }) => event.id);
  // A repeat mostly comes from the sweeper, which misses the ledger's confirmation: the charge is sent again, in case that it is lost (a restored backup). Billing takes it once.
  const again = look ? await storedCharges(tx, ids) : [];
  const known = new Set(again.map(({ id }) => id));
  const fresh = known.size === 0 ? rated : rated.filter(({ event }) => !known.has(event.id));
  const recorded = fresh.length > 0 ? recordEvents(await connectionOf(tx), fresh) : undefined;
  // Made while Postgres copies.
  const sums = sumUp(fresh);
  const backends = sumByBackend(fresh.map(({ event }) => event));
  const charges = [...fresh.map(chargeOf), ...again];
  await recorded;
  if (fresh.length > 0) {
    await addToSums(tx, sums);
    await addToBackends(tx, backends);
  }
  await enqueue(tx, 'charges', charges);
  failPoint('recording');
  return fresh;
}

function sortOut(messages: readonly unknown[]): { valid: UsageEvent[]; rejected: Rejected[] } {
  const nowMs = Date.now();
  const valid: UsageEvent[] = [];
  const rejected: Rejected[] = [];
  for (const value of messages) {
    const reason = whyNotUsageEvent(value, nowMs);
    if (reason === null) valid.push(value as UsageEvent);
    else rejected.push({ value, reason });
  }
  return { valid, rejected };
}

/** The first of each id, ascending by id. */
function onePerId(events: readonly UsageEvent[]): UsageEvent[] {
  const byId = new Map<string, UsageEvent>();
  for (const event of events) if (!byId.has(event.id)) byId.set(event.id, event);
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function report(rejected: readonly Rejected[], disagreeing: readonly RatedEvent[]): void {
  const log = logger('metering');
  for (const { value, reason } of rejected) {
    const { id } = (value ?? {}) as { id?: unknown };
    log.error(
      { reason, eventId: typeof id === 'string' ? id.slice(0, 64) : undefined },
      'usage event set aside in rejected_event',
    );
  }
  for (const { event, chargeNanos, overrunNanos, disagreementNanos } of disagreeing) {
    const amounts = {
      chargeNanos: String(chargeNanos),
      overrunNanos: String(overrunNanos),
      ratedNanos: String(disagreementNanos),
    };
    log.warn({ eventId: event.id, model: event.model, ...amounts }, 'the settled cost is not the rated cost');
  }
}
