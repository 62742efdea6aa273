import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { assertBalanced, LedgerError } from './accounts';
import { MAX_BALANCE_CENTS, newMonth } from './books';
import { newBooks } from './books.fixture';
import { book } from './entry';
import { gather } from './gather';
import { CALENDAR, CENT, checkInvariants, MemoryLedger, step } from './memory-ledger.fixture';
import { periodOf } from './period';
import { post } from './post';

/** Some thousands of runs. A failure prints the seed and path that repeat it. */
const SEED = 20261121;

describe('the pure core', () => {
  it('holds its invariants over any history of top-ups, debts, charges of several months, and postings', async () => {
    await assertRuns(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const ledger = new MemoryLedger();
        for (const one of steps) {
          ledger.run(one);
          checkInvariants(ledger);
        }
      }),
      { seed: SEED, leastRuns: 10_000 },
    );
  });

  it('posts a charge only when it can pay for all of it', () => {
    const topped = book(newBooks('ten_a'), 'ent_1', {
      type: 'topup',
      amountCents: 3n,
      source: 's',
      ref: 'r',
      period: '2026-11',
    }).books;
    const cost = {
      id: 'req_1',
      tenantId: 'ten_a',
      keyId: 'k',
      costNanos: 4n * CENT,
      endedAt: new Date('2026-11-05'),
      ownPeriod: '2026-11',
    };
    const { books, months } = gather(topped, [], [cost], CALENDAR);
    expect(post(books, months, () => 'ent_2').entries).toEqual([]);
    const more = book(books, 'ent_2', {
      type: 'topup',
      amountCents: 1n,
      source: 's',
      ref: 'r2',
      period: '2026-11',
    }).books;
    expect(post(more, months, () => 'ent_3').entries).toMatchObject([{ amountCents: -4n, balanceAfterCents: 0n }]);
  });

  it('refuses entries whose sign does not fit, that overdraw, or that leave the safe integers', () => {
    const request = { source: 's', ref: 'r', period: '2026-11' };
    const books = { ...newBooks('ten_a'), balanceCents: 10n };
    expect(() => book(books, 'e', { ...request, type: 'topup', amountCents: 0n })).toThrow(LedgerError);
    expect(() => book(books, 'e', { ...request, type: 'topup', amountCents: -1n })).toThrow(LedgerError);
    expect(() => book(books, 'e', { ...request, type: 'refund', amountCents: 1n })).toThrow(LedgerError);
    expect(() => book(books, 'e', { ...request, type: 'refund', amountCents: -11n })).toThrow(LedgerError);
    expect(() => book(books, 'e', { ...request, type: 'topup', amountCents: MAX_BALANCE_CENTS })).toThrow(LedgerError);
    expect(book(books, 'e', { ...request, type: 'adjustment', amountCents: -11n }).books.balanceCents).toBe(-1n);
  });

  it('refuses postings that do not balance, are zero, repeat an account, or contradict the amount', () => {
    expect(() => assertBalanced([{ account: 'credit', amountCents: 1n }], 1n)).toThrow('sum to 1');
    expect(() => assertBalanced([{ account: 'credit', amountCents: 0n }], 0n)).toThrow('of zero');
    const twice = [5n, -2n, -3n].map((amountCents, i) => ({
      account: i === 0 ? ('credit' as const) : ('overrun' as const),
      amountCents,
    }));
    expect(() => assertBalanced(twice, 5n)).toThrow('twice');
    expect(() =>
      assertBalanced(
        [
          { account: 'credit', amountCents: 2n },
          { account: 'adjustments', amountCents: -2n },
        ],
        1n,
      ),
    ).toThrow('credit moves by 2');
  });

  it('refuses charges of another tenant, negative charges, and months that contradict the books', () => {
    const cost = { id: 'r', tenantId: 'ten_b', keyId: 'k', costNanos: 1n, endedAt: new Date(0), ownPeriod: '1970-01' };
    expect(() => gather(newBooks('ten_a'), [], [cost], CALENDAR)).toThrow(LedgerError);
    expect(() => gather(newBooks('ten_b'), [], [{ ...cost, costNanos: -1n }], CALENDAR)).toThrow(LedgerError);
    expect(() => post({ ...newBooks('ten_a'), gatheredNanos: 1n }, [newMonth('ten_a', '2026-11')], () => 'e')).toThrow(
      LedgerError,
    );
  });

  it('decides a month by UTC', () => {
    expect(periodOf(new Date('2026-12-31T23:59:59.999Z'))).toBe('2026-12');
    expect(periodOf(new Date('2027-01-01T00:30:00+01:00'))).toBe('2026-12');
    expect(() => periodOf(new Date('+012026-01-01T00:00:00Z'))).toThrow(RangeError);
  });
});
