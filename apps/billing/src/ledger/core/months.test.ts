import { newMonth } from './books';
import { newBooks } from './books.fixture';
import { gather } from './gather';
import { newestOver, nextPeriod } from './period';

describe('months', () => {
  it('bills a late charge to the running month if its own is closed, even if the tenant had nothing in it', () => {
    const late = (ownPeriod: string) => ({
      id: 'r',
      tenantId: 'ten_a',
      keyId: 'k',
      costNanos: 1n,
      endedAt: new Date(`${ownPeriod}-05`),
      ownPeriod,
    });
    const billed = (own: string, closed: string[], running = '2026-12') =>
      gather(
        newBooks('ten_a'),
        closed.map((period) => ({ ...newMonth('ten_a', period), closed: true })),
        [late(own)],
        { closedThrough: '2026-09', running },
      ).charges[0]!.billedPeriod;
    expect(billed('2026-11', [])).toBe('2026-11');
    expect(billed('2026-11', ['2026-11'])).toBe('2026-12');
    expect(billed('2026-08', [])).toBe('2026-12');
    // This clock is behind the closer's clock.
    expect(billed('2026-11', ['2026-11'], '2026-11')).toBe('2026-12');
    expect(billed('2026-11', ['2026-11', '2026-12'], '2026-11')).toBe('2027-01');
  });

  it('knows when a month is over', () => {
    const HOUR_MS = 3_600_000;
    const at = (text: string) => new Date(text);
    expect(newestOver(at('2026-03-01T00:59:59.999Z'), HOUR_MS)).toBe('2026-01');
    expect(newestOver(at('2026-03-01T01:00:00.000Z'), HOUR_MS)).toBe('2026-02');
    expect(newestOver(at('2027-01-31T23:59:59.999Z'), 0)).toBe('2026-12');
    expect([nextPeriod('2026-12'), nextPeriod('2028-02')]).toEqual(['2027-01', '2028-03']);
  });
});
