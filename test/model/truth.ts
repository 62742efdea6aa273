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

  paid(tenantId: string, cents: number): void {
    this.paidCents.set(tenantId, (this.paidCents.get(tenantId) ?? 0) + cents);
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

  /** @param storeNanos the balance that the admission store has */
  isIn(tenantId: string, books: BooksView, storeNanos: bigint): void {
    assert.deepEqual(
      [...books.charges].sort(),
      this.of(tenantId)
        .map(({ id, costNanos }) => [id, BigInt(costNanos)] as const)
        .sort(),
      'each request that ended is charged once, at what it was settled',
    );
    assert.deepEqual(books.faults, []);
    assert(books.balanceCents >= 0n, 'usage and refunds take no balance below zero');
    const nanos = books.balanceCents * NANOS_PER_CENT - books.unpostedNanos;
    assert.equal(nanos, this.leftNanos(tenantId), 'the books say what was paid less what was used');
    assert.equal(storeNanos, nanos, 'and so does the admission store');
  }

  private of(tenantId: string): UsageEvent[] {
    return [...this.events.values()].filter((event) => event.tenantId === tenantId);
  }
}
