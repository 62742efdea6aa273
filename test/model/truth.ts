import { costNanos, NANOS_PER_CENT, type TokenCounts, type UsageEvent } from '@tollgate/contracts';
import assert from 'node:assert/strict';
import type { BooksView } from './stores';

/** The books as they must be in the end, collected from the answers of the stores. */
export class Truth {
  /** The settled event of each request, by id. The first end counts. */
  private readonly events = new Map<string, UsageEvent>();
  private readonly voided = new Set<string>();
  /** The last recorded progress of a stream. It is charged if the gateway died. */
  private readonly recorded = new Map<string, TokenCounts>();
  private readonly paidCents = new Map<string, number>();
  /** Debts from adjustments beyond the balance. */
  private readonly debtCents = new Map<string, number>();

  /** Amounts that an emptied admission store does not know. */
  private readonly lostNanos = new Map<string, bigint>();

  /**
   * The admission store was emptied: held credit, and settled credit that may be missing in the books, can be spent
   * again.
   */
  lost(tenantId: string, nanos: bigint): void {
    this.lostNanos.set(tenantId, this.mayExceedNanos(tenantId) + nanos);
  }

  /** By how much a tenant may exceed its credit and each of its budgets. */
  mayExceedNanos(tenantId: string): bigint {
    return this.lostNanos.get(tenantId) ?? 0n;
  }

  /** Forgets the requests that were served and lost with the only store that knew them. */
  forgetAllBut(told: ReadonlySet<string>): void {
    for (const id of this.events.keys()) if (!told.has(id)) this.events.delete(id);
  }

  hasEnded(id: string): boolean {
    return this.events.has(id) || this.voided.has(id);
  }

  paid(tenantId: string, cents: number): void {
    this.paidCents.set(tenantId, (this.paidCents.get(tenantId) ?? 0) + cents);
  }

  owes(tenantId: string, cents: number): void {
    this.debtCents.set(tenantId, (this.debtCents.get(tenantId) ?? 0) + cents);
  }

  /** How far below zero adjustments may have taken the tenant. Nothing else may take it there. */
  debtNanos(tenantId: string): bigint {
    return BigInt(this.debtCents.get(tenantId) ?? 0) * NANOS_PER_CENT;
  }

  /** The cost of the requests that ended in this month (`YYYY-MM`) or later, of the tenant or of one of its keys. */
  spentNanos(tenantId: string, keyId: string | null, month: string): bigint {
    return this.of(tenantId)
      .filter((event) => (keyId === null || event.keyId === keyId) && event.endedAt.slice(0, 7) >= month)
      .reduce((sum, event) => sum + BigInt(event.costNanos), 0n);
  }

  progressed(id: string, tokens: TokenCounts): void {
    this.recorded.set(id, tokens);
  }

  isVoid(id: string): void {
    this.voided.add(id);
  }

  /** Records the end of a hold. The first end counts. */
  ended(event: UsageEvent): UsageEvent {
    const first = this.events.get(event.id);
    if (first) assert.deepEqual(event, first, 'a hold ends once');
    assert(!this.voided.has(event.id), 'a void hold is not charged');
    this.events.set(event.id, event);
    if (event.outcome === 'expired') {
      const recorded = this.recorded.get(event.id);
      assert(recorded, 'a hold without recorded progress is not charged');
      const cost = BigInt(event.costNanos) + BigInt(event.overrunNanos);
      assert.equal(cost, costNanos(recorded, event.price), 'an expired hold is charged its recorded progress');
    }
    return event;
  }

  /** Payments minus the cost of all ended requests. */
  leftNanos(tenantId: string): bigint {
    let nanos = BigInt(this.paidCents.get(tenantId) ?? 0) * NANOS_PER_CENT;
    for (const event of this.of(tenantId)) nanos -= BigInt(event.costNanos);
    return nanos;
  }

  /** @param storeNanos the balance in the admission store, or null if it was emptied and did not ask yet */
  isIn(tenantId: string, books: BooksView, storeNanos: bigint | null): void {
    assert.deepEqual(
      [...books.charges].sort(),
      this.of(tenantId)
        .map(({ id, costNanos }) => [id, BigInt(costNanos)] as const)
        .sort(),
      'each ended request is charged once, at its settled cost',
    );
    assert.deepEqual(books.faults, []);
    const debtNanos = this.debtNanos(tenantId);
    assert(books.balanceCents * NANOS_PER_CENT >= -debtNanos, 'usage and refunds take no balance below zero');
    const nanos = books.balanceCents * NANOS_PER_CENT - books.unpostedNanos;
    assert.equal(nanos, this.leftNanos(tenantId), 'the balance of the books is payments minus usage');
    if (storeNanos !== null) assert.equal(storeNanos, nanos, 'the admission store has the balance of the books');
  }

  private of(tenantId: string): UsageEvent[] {
    return [...this.events.values()].filter((event) => event.tenantId === tenantId);
  }
}
