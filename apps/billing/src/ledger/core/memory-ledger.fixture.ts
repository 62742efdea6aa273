import assert from 'node:assert/strict';
import fc from 'fast-check';
import { balanceUpdate, canPost, unpostedNanos, type Books, type Month } from './books';
import { newBooks } from './books.fixture';
import { book, type Entry } from './entry';
import { gather, type NumberedCharge } from './gather';
import { chargePeriod } from './period';
import { partWanted, post, postThrough, type ChargeRange, type Part } from './post';

export const CENT = 10_000_000n;
export const CALENDAR = { running: '2026-12', closedThrough: '2026-09' };

/** One step of a history. */
export type Step =
  | { do: 'topup'; cents: bigint }
  | { do: 'debt'; cents: bigint }
  | { do: 'gather'; charges: { period: string; nanos: bigint }[] }
  | { do: 'post' }
  | { do: 'close'; through: string };

const nanos = fc.oneof(
  fc.bigInt(0n, CENT * 2n),
  fc.constantFrom(0n, 1n, CENT - 1n, CENT, CENT + 1n),
  fc.bigInt(0n, CENT * 1000n),
);
/** Any step, over three months. */
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant('topup' as const), cents: fc.bigInt(1n, 5_000n) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('debt' as const), cents: fc.bigInt(1n, 5_000n) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('gather' as const),
      charges: fc.array(fc.record({ period: fc.constantFrom('2026-10', '2026-11', '2026-12'), nanos }), {
        maxLength: 6,
      }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('post' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('close' as const), through: fc.constantFrom('2026-10', '2026-11') }),
  },
);

/** The ledger in memory: the contents of the stores, made by the pure core alone. */
export class MemoryLedger {
  books: Books = newBooks('ten_a');
  months = new Map<string, Month>();
  charges: NumberedCharge[] = [];
  entries: Entry[] = [];
  ranges: ChargeRange[] = [];
  private ids = 0;

  run(step: Step): void {
    const before = this.books;
    if (step.do === 'topup' || step.do === 'debt')
      this.take(
        book(this.books, `ent_${++this.ids}`, {
          type: step.do === 'topup' ? 'topup' : 'adjustment',
          amountCents: step.do === 'topup' ? step.cents : -step.cents,
          source: 'manual',
          ref: `${this.ids}`,
          period: '2026-11',
        }),
      );
    else if (step.do === 'gather') this.gather(step.charges);
    else if (step.do === 'close') this.close(step.through);
    else this.post();
    const changed = JSON.stringify(before, bigints) !== JSON.stringify(this.books, bigints);
    assert.equal(this.books.version > before.version, changed);
  }

  private take({ books, entry }: { books: Books; entry: Entry }): void {
    this.books = books;
    this.entries.push(entry);
  }

  private gather(charges: { period: string; nanos: bigint }[]): void {
    const read = charges.map(({ period, nanos }) => {
      const endedAt = new Date(`${period}-15T12:00:00Z`);
      return {
        id: `req_${++this.ids}`,
        tenantId: 'ten_a',
        keyId: 'key_a',
        costNanos: nanos,
        endedAt,
        ownPeriod: chargePeriod(endedAt),
      };
    });
    const gathered = gather(this.books, [...this.months.values()], read, CALENDAR);
    this.books = gathered.books;
    this.charges.push(...gathered.charges);
    for (const month of gathered.months) this.months.set(month.period, month);
  }

  private close(through: string): void {
    const closed = [...this.months.values()].filter((month) => month.closed);
    close(this, through, () => `ent_${++this.ids}`);
    for (const month of closed) assert.deepEqual(this.months.get(month.period), month);
  }

  private post(): void {
    const could = canPost(this.books);
    const months = [...this.months.values()];
    const wanted = partWanted(this.books, months);
    const posted = post(this.books, months, () => `ent_${++this.ids}`, wanted && this.part(wanted));
    assert.equal(could && wanted !== null, false);
    if (could || !wanted) assert.equal(posted.entries.length > 0, could);
    this.books = posted.books;
    this.entries.push(...posted.entries);
    this.ranges.push(...posted.ranges);
    for (const month of posted.months) this.months.set(month.period, month);
    if (could) assert.equal(unpostedNanos(this.books) < CENT, true);
    else if (wanted) this.assertNoMoreFits();
  }

  private part({ month, limitNanos }: { month: Month; limitNanos: bigint }): Part | null {
    let part: Part | null = null;
    for (const { seq, costNanos } of this.uncovered(month)) {
      const nanos: bigint = (part?.nanos ?? 0n) + costNanos;
      if (nanos > limitNanos) return part;
      part = { period: month.period, toSeq: seq, nanos };
    }
    return part;
  }

  private uncovered({ period, coveredSeq }: Month): NumberedCharge[] {
    return this.charges.filter((one) => one.billedPeriod === period && one.seq > coveredSeq);
  }

  /**
   * The next charges, as far as they make a cent, would take the balance below zero. So nothing more can be covered.
   */
  private assertNoMoreFits(): void {
    const open = [...this.months.values()].filter((month) => month.coveredSeq < month.lastSeq);
    const next = open.sort((a, b) => (a.period < b.period ? -1 : 1)).flatMap((month) => this.uncovered(month));
    let nanos = this.books.carriedNanos;
    while (nanos < CENT && next.length > 0) nanos += next.shift()!.costNanos;
    assert.equal(nanos / CENT > this.books.balanceCents, true);
  }
}

/** The work of a closer for one tenant. */
function close(ledger: MemoryLedger, through: string, newEntryId: () => string): void {
  const posted = postThrough(ledger.books, [...ledger.months.values()], through, newEntryId);
  ledger.books = posted.books;
  ledger.entries.push(...posted.entries);
  ledger.ranges.push(...posted.ranges);
  for (const month of posted.months) ledger.months.set(month.period, month);
  for (const month of ledger.months.values()) {
    if (month.period > through) continue;
    // Only usage that the balance does not pay for is left: a whole cent at least.
    if (month.coveredSeq < month.lastSeq) {
      const cents = unpostedNanos(ledger.books) / CENT;
      assert.equal(cents > 0n && cents > ledger.books.balanceCents, true);
    } else ledger.months.set(month.period, { ...month, closed: true });
  }
}

/** The invariants of the ledger, with node:assert, because Jest's expect takes ten times as long. */
export function checkInvariants({ books, months, charges, entries, ranges }: MemoryLedger): void {
  const sum = <T>(rows: readonly T[], value: (row: T) => bigint) => rows.reduce((total, row) => total + value(row), 0n);
  const debits = -sum(
    entries.filter((entry) => entry.type === 'usage'),
    (entry) => entry.amountCents,
  );
  // Nothing lost, nothing doubled.
  assert.equal(
    sum(charges, (charge) => charge.costNanos),
    debits * CENT + unpostedNanos(books),
  );
  assert.equal(
    books.balanceCents,
    sum(entries, (entry) => entry.amountCents),
  );
  assert.equal(books.carriedNanos < CENT, true);
  assert.equal(balanceUpdate(books, []).balanceNanos, String(books.balanceCents * CENT - unpostedNanos(books)));
  let balance = 0n;
  entries.forEach((entry, index) => {
    balance += entry.amountCents;
    assert.equal(entry.balanceAfterCents, balance);
    // Usage never takes a balance below zero. Only a debt that a person allows does.
    if (entry.type === 'usage') assert.equal(balance >= 0n, true);
    assert.equal(entry.sequence, BigInt(index + 1));
    assert.equal(
      sum(entry.postings, (posting) => posting.amountCents),
      0n,
    );
  });
  // Every charge is in exactly one range of its month, or after the last range.
  let carried = 0n;
  const coveredTo = new Map<string, bigint>();
  for (const range of ranges) {
    assert.equal(range.carriedInNanos, carried);
    assert.equal(range.fromSeq, (coveredTo.get(range.period) ?? 0n) + 1n);
    const covered = charges.filter(
      (charge) => charge.billedPeriod === range.period && charge.seq >= range.fromSeq && charge.seq <= range.toSeq,
    );
    assert.equal(
      sum(covered, (charge) => charge.costNanos),
      range.chargesNanos,
    );
    assert.equal(range.chargesNanos + range.carriedInNanos, range.amountCents * CENT + range.carriedOutNanos);
    assert.equal(entries.find((entry) => entry.id === range.entryId)?.amountCents ?? 0n, -range.amountCents);
    carried = range.carriedOutNanos;
    coveredTo.set(range.period, range.toSeq);
  }
  assert.equal(carried, books.carriedNanos);
  for (const month of months.values()) assert.equal(month.coveredSeq, coveredTo.get(month.period) ?? 0n);
}

function bigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
