import { Inject, Injectable } from '@nestjs/common';
import type { BalanceUpdate, Charge } from '@tollgate/contracts';
import { withinOrStored, type AfterCommitPublisher } from '@tollgate/messaging';
import { query, sqlState, transaction } from '@tollgate/postgres';
import { failPoint, logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { addSpending } from '../budgets/spending';
import { DEFAULT_THRESHOLDS_PERCENT } from '../budgets/thresholds';
import { BillingDataSource } from '../database';
import { readClocks, type Clocks } from '../ledger/clocks';
import { loadMonths, lockBooks, saveBooks, saveMonths } from '../ledger/books-store';
import { byTenant, balanceUpdate, type Books, type Month } from '../ledger/core/books';
import { gather, type Calendar, type NumberedCharge, type ReadCharge } from '../ledger/core/gather';
import { periodOf, type Period } from '../ledger/core/period';
import { isBroken } from '../ledger/is-broken';
import { insertCharges } from '../ledger/journal';
import { BILLING_OPTIONS } from '../options';
import { observeLag } from '../post/metrics';
import { readCharge } from './read-charge';
import { closedCharges, quarantine, type Rejected } from './rejected';

export interface GatherResult {
  /** Milliseconds until the first usage of these tenants is due for posting; null if none is. */
  dueInMs: number | null;
  gathered: number;
  repeated: number;
  rejected: number;
}

/** What one transaction gathers. */
interface Batch {
  charges: readonly ReadCharge[];
  unreadable: readonly Rejected[];
  publisher: AfterCommitPublisher | undefined;
  /** Quarantines new charges with this reason instead of gathering them. */
  refusal?: string;
}

/** Its result. */
interface Taken {
  dueInMs: number | null;
  fresh: readonly ReadCharge[];
  rejected: readonly Rejected[];
  /** Balance updates that must be published after the commit. */
  unpublished: readonly BalanceUpdate[];
}

/**
 * Gathers batches of charges into the books, exactly once by the charge's id, in any order and with any repeats. One
 * transaction per batch:
 *
 * 1. Lock the tenants' books, in sorted order.
 * 2. Skip the charges that are already there.
 * 3. Number the new charges per tenant and month, add them up, and append them. A charge of a closed month goes to the
 *    running one, by the clocks that close the months.
 * 4. Put a balance update into the outbox, or publish it after the commit: the new balance, and all holds of the batch
 *    for release. These include the holds of repeats, of dismissed events, and of quarantined charges that a person has
 *    closed, but not holds of other quarantined charges.
 * 5. Add to the month's spending of tenants and keys, and record the budget thresholds that this reaches.
 *
 * So a hold is released as soon as its charge is durable here, not only when whole cents are posted.
 *
 * When the books of one tenant refuse, each tenant gets its own transaction. The charges of the broken one are
 * quarantined and their holds stay, so metering redelivers them until the books accept them. Nobody else waits.
 */
@Injectable()
export class ChargeGatherer {
  constructor(
    private readonly dataSource: BillingDataSource,
    /** `now`: by default the system's clock. */
    @Inject(BILLING_OPTIONS)
    private readonly options: Partial<Clocks> & {
      postingIntervalMs: number;
      thresholdsPercent?: () => readonly number[];
    },
  ) {}

  /** @param publisher only for charges that are delivered again unless this call returns: acknowledge them after it */
  async gather(batch: readonly Charge[], publisher?: AfterCommitPublisher): Promise<GatherResult> {
    const { charges, rejected: unreadable } = sort(batch);
    const taken = await this.takeAll([...charges.values()], unreadable, publisher);
    const { dueInMs, fresh, rejected } = taken;
    observeLag(fresh);
    await publisher?.publish('credit-news', taken.unpublished);
    const repeated = batch.length - fresh.length - rejected.length;
    return { dueInMs, gathered: fresh.length, repeated, rejected: rejected.length };
  }

  private async takeAll(
    charges: readonly ReadCharge[],
    unreadable: readonly Rejected[],
    publisher: AfterCommitPublisher | undefined,
  ): Promise<Taken> {
    try {
      return await this.take({ charges, unreadable, publisher });
    } catch (error) {
      if (!isBroken(error)) throw error;
    }
    const taken = [await this.take({ charges: [], unreadable, publisher })];
    for (const own of byTenant(charges).values()) taken.push(await this.takeAlone(own, publisher));
    const due = taken.flatMap(({ dueInMs }) => (dueInMs === null ? [] : [dueInMs]));
    return {
      dueInMs: due.length === 0 ? null : Math.min(...due),
      fresh: taken.flatMap(({ fresh }) => fresh),
      rejected: taken.flatMap(({ rejected }) => rejected),
      unpublished: taken.flatMap(({ unpublished }) => unpublished),
    };
  }

  /** Gathers the charges of one tenant. */
  private async takeAlone(charges: readonly ReadCharge[], publisher: AfterCommitPublisher | undefined): Promise<Taken> {
    try {
      return await this.take({ charges, unreadable: [], publisher });
    } catch (error) {
      if (!isBroken(error)) throw error;
      const { tenantId } = charges[0]!;
      logger('billing').error({ err: error, tenantId }, 'the charges violate a ledger rule: run reconcile');
      // The same text at each attempt, so that a repeat only counts up.
      const reason = `the books of this tenant refuse it: ${sqlState(error) ?? 'LedgerError'}`;
      return this.take({ charges, unreadable: [], publisher, refusal: reason });
    }
  }

  private take({ charges, unreadable, publisher, refusal }: Batch): Promise<Taken> {
    return transaction(this.dataSource, async (tx) => {
      const books = await lockBooks(
        tx,
        charges.map((charge) => charge.tenantId),
      );
      const { fresh, ended, refused } = await this.withoutRepeats(tx, charges, refusal);
      const dueInMs = await this.append(tx, books, fresh);
      const unpublished = await withinOrStored(publisher, tx, 'credit-news', updatesOf(books, ended));
      await addSpending(tx, fresh, this.options.thresholdsPercent?.() ?? DEFAULT_THRESHOLDS_PERCENT);
      const rejected = [...unreadable, ...refused];
      await quarantine(tx, rejected);
      failPoint('gathering');
      return { dueInMs, fresh, rejected, unpublished };
    });
  }

  /**
   * The charges that are not in the books yet (`fresh`), and these together with the repeats (`ended`), whose holds are
   * released. A charge whose id the books have with other content is quarantined, and the first one stays. A new
   * charge of a month that metering has retired is quarantined, too. Once a person has closed such a charge, a repeat
   * of it only releases its hold. A charge that the books refuse stays quarantined until they accept it, also if it was
   * dismissed, because its event is recorded.
   */
  private async withoutRepeats(
    tx: EntityManager,
    charges: readonly ReadCharge[],
    refusal?: string,
  ): Promise<{ fresh: ReadCharge[]; ended: ReadCharge[]; refused: Rejected[] }> {
    const rows = await query<{ id: string; tenant_id: string; cost_nanos: string }>(
      tx,
      'SELECT id, tenant_id, cost_nanos FROM charge WHERE id = ANY($1)',
      [charges.map((charge) => charge.id)],
    );
    const known = new Map(rows.map((row) => [row.id, row]));
    const fresh: ReadCharge[] = [];
    const ended: ReadCharge[] = [];
    const doubtful: { charge: ReadCharge; reason: string }[] = [];
    for (const charge of charges) {
      const first = known.get(charge.id);
      const reason = reasonAgainst(charge, first) ?? (first || charge.dismissed ? undefined : refusal);
      if (reason !== undefined) {
        doubtful.push({ charge, reason });
        continue;
      }
      ended.push(charge);
      if (!first && !charge.dismissed) fresh.push(charge);
    }
    const isClosed = await closedCharges(
      tx,
      doubtful.flatMap(({ charge, reason }) => (reason === refusal ? [] : [charge])),
    );
    const refused: Rejected[] = [];
    for (const { charge, reason } of doubtful) {
      if (isClosed(charge)) ended.push(charge);
      else refused.push(rejectedCharge(charge, reason));
    }
    return { fresh, ended, refused };
  }

  private async append(
    tx: EntityManager,
    books: Map<string, Books>,
    fresh: readonly ReadCharge[],
  ): Promise<number | null> {
    const freshOf = byTenant(fresh);
    const loaded = await loadMonths(tx, fresh);
    const monthsOf = byTenant(loaded.months);
    const calendar = await this.calendar(tx, fresh, loaded);
    const changed: Books[] = [];
    const months: Month[] = [];
    const numbered: NumberedCharge[] = [];
    for (const [tenantId, charges] of freshOf) {
      const gathered = gather(books.get(tenantId)!, monthsOf.get(tenantId) ?? [], charges, calendar);
      books.set(tenantId, gathered.books);
      changed.push(gathered.books);
      months.push(...gathered.months);
      numbered.push(...gathered.charges);
    }
    await insertCharges(tx, numbered);
    await saveMonths(tx, months);
    return saveBooks(tx, changed, this.options);
  }

  /** PostgreSQL is asked for its clock only if a charge may be late: nothing else depends on the running month. */
  private async calendar(
    tx: EntityManager,
    charges: readonly ReadCharge[],
    { months, closedThrough }: { months: readonly Month[]; closedThrough: Period },
  ): Promise<Calendar> {
    const { now = () => new Date(), databaseNow } = this.options;
    const mayBeLate =
      months.some(({ closed }) => closed) || charges.some(({ ownPeriod }) => ownPeriod <= closedThrough);
    const { earlier } = await readClocks(mayBeLate ? { now, databaseNow } : { now }, tx);
    return { running: periodOf(earlier), closedThrough };
  }
}

/** The balance update of each tenant, which releases the holds of these charges. */
function updatesOf(books: ReadonlyMap<string, Books>, ended: readonly ReadCharge[]): BalanceUpdate[] {
  return [...byTenant(ended)].map(([tenantId, charges]) =>
    balanceUpdate(
      books.get(tenantId)!,
      charges.map((charge) => charge.id),
    ),
  );
}

const LATE = 'its month is closed for usage, and this id was never charged';
const CONFLICT = 'this id was charged before with another tenant or cost';

/** @param first the charge with this id that is in the books */
function reasonAgainst(charge: ReadCharge, first?: { tenant_id: string; cost_nanos: string }): string | undefined {
  if (!first) return charge.late && !charge.dismissed ? LATE : undefined;
  const differs = !charge.dismissed && first.cost_nanos !== String(charge.costNanos);
  return differs || first.tenant_id !== charge.tenantId ? CONFLICT : undefined;
}

/** Reads a batch: each id once, in the order of arrival. */
function sort(batch: readonly Charge[]): { charges: Map<string, ReadCharge>; rejected: Rejected[] } {
  const charges = new Map<string, ReadCharge>();
  const rejected: Rejected[] = [];
  for (const data of batch) {
    const charge = readCharge(data);
    if ('reason' in charge) {
      rejected.push({ reason: charge.reason, data });
      continue;
    }
    const first = charges.get(charge.id);
    // A charge also releases its hold.
    if (!first || (first.dismissed && first.tenantId === charge.tenantId)) charges.set(charge.id, charge);
    else if (charge.dismissed && first.tenantId === charge.tenantId) continue;
    else if (first.tenantId !== charge.tenantId || first.costNanos !== charge.costNanos)
      rejected.push(rejectedCharge(charge, CONFLICT));
  }
  return { charges, rejected };
}

/** Without its default budgets, which a repeat does not have. So the same charge is kept only once. */
function rejectedCharge(
  { id, tenantId, keyId, costNanos, overrunNanos, endedAt, late, dismissed }: ReadCharge,
  reason: string,
): Rejected {
  const overrun = overrunNanos && { overrunNanos: String(overrunNanos) };
  const data: Charge = {
    id,
    tenantId,
    keyId,
    costNanos: String(costNanos),
    ...overrun,
    endedAt: endedAt.toISOString(),
    ...(late && { late }),
    ...(dismissed && { dismissed }),
  };
  return { reason, data };
}
