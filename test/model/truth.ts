import { costNanos, NANOS_PER_CENT, type TokenCounts, type UsageEvent } from '@tollgate/contracts';
import assert from 'node:assert/strict';
import type { BooksView } from './stores';

/** What the books must say in the end, gathered from what the stores answered on the way. */
export class Truth {
  /** First ends, by id: the event that was settled. */
  private readonly events = new Map<string, UsageEvent>();
  private readonly voided = new Set<string>();
  /** What was recorded last of a request's stream: all that is charged of one whose gateway died. */
  private readonly recorded = new Map<string, TokenCounts>();
  private readonly paidCents = new Map<string, number>();
  /** What persons took away though it was not there. */
  private readonly debtCents = new Map<string, number>();

  /** What an emptied admission store could not know any more. */
  private readonly lostNanos = new Map<string, bigint>();

  /**
   * The admission store was emptied: what was held, and what was settled and may not be in the books, can be spent
   * again.
   */
  lost(tenantId: string, nanos: bigint): void {
    this.lostNanos.set(tenantId, this.mayExceedNanos(tenantId) + nanos);
  }

  /** Of a tenant's credit, and of each budget of it. */
  mayExceedNanos(tenantId: string): bigint {
    return this.lostNanos.get(tenantId) ?? 0n;
  }

  /** Served, and lost with the only store that knew of it. */
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

  /** How far below zero a person's adjustments may have taken the tenant; nothing else may. */
  debtNanos(tenantId: string): bigint {
    return BigInt(this.debtCents.get(tenantId) ?? 0) * NANOS_PER_CENT;
  }

  /** By requests that ended in this month (`YYYY-MM`) or later, of the tenant or of one of its keys. */
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

  /** A hold ended with this record: the first end stands, whoever tells of it. */
  ended(event: UsageEvent): UsageEvent {
    const first = this.events.get(event.id);
    if (first) assert.deepEqual(event, first, 'a hold ends once');
    assert(!this.voided.has(event.id), 'what is void is not charged');
    this.events.set(event.id, event);
    if (event.outcome === 'expired') {
      const recorded = this.recorded.get(event.id);
      assert(recorded, 'nothing recorded, nothing charged');
      const cost = BigInt(event.costNanos) + BigInt(event.overrunNanos);
      assert.equal(cost, costNanos(recorded, event.price), 'an expired hold is charged what was recorded');
    }
    return event;
  }

  /** What was paid less all that ended. */
  leftNanos(tenantId: string): bigint {
    let nanos = BigInt(this.paidCents.get(tenantId) ?? 0) * NANOS_PER_CENT;
    for (const event of this.of(tenantId)) nanos -= BigInt(event.costNanos);
    return nanos;
  }

  /** @param storeNanos the balance that the admission store has; null: it was emptied, and did not ask yet */
  isIn(tenantId: string, books: BooksView, storeNanos: bigint | null): void {
    assert.deepEqual(
      [...books.charges].sort(),
      this.of(tenantId)
        .map(({ id, costNanos }) => [id, BigInt(costNanos)] as const)
        .sort(),
      'each request that ended is charged once, at what it was settled',
    );
    assert.deepEqual(books.faults, []);
    const debtNanos = this.debtNanos(tenantId);
    assert(books.balanceCents * NANOS_PER_CENT >= -debtNanos, 'usage and refunds take no balance below zero');
    const nanos = books.balanceCents * NANOS_PER_CENT - books.unpostedNanos;
    assert.equal(nanos, this.leftNanos(tenantId), 'the books say what was paid less what was used');
    if (storeNanos !== null) assert.equal(storeNanos, nanos, 'and so does the admission store');
  }

  private of(tenantId: string): UsageEvent[] {
    return [...this.events.values()].filter((event) => event.tenantId === tenantId);
  }
}
