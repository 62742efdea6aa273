import type { Charge } from '@tollgate/contracts';
import { transaction } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { ChargeGatherer } from '../gather/charge-gatherer';
import { bookEntry } from '../ledger/booking';
import { lockBooks } from '../ledger/books-store';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { InvoiceCloser } from './invoice-closer';

const database = useTestDatabase();

describe('closing', () => {
  const billing = useBilling(database);
  let clock = new Date('2030-10-20T00:00:00Z');
  const at = (text: string) => (clock = new Date(text));
  const options = { postingIntervalMs: 0, closeDelayMs: 0, now: () => clock };
  let closer: InvoiceCloser;
  let gatherer: ChargeGatherer;
  beforeAll(() => {
    closer = new InvoiceCloser(billing.dataSource, options);
    gatherer = new ChargeGatherer(billing.dataSource, options);
  });
  const gather = async (tenantId: string, nanos: bigint, endedAt: string): Promise<Charge> => {
    const one = charge(tenantId, nanos, { endedAt });
    await gatherer.gather([one]);
    return one;
  };
  const paid = async (tenantId: string) =>
    (
      await database.query<{ period: string; cents: number }>(
        'SELECT period, amount_cents::int AS cents FROM billing.invoice WHERE tenant_id = $1 ORDER BY 1',
        [tenantId],
      )
    ).map(({ period, cents }) => [period, cents]);

  it('closes all other tenants when the books of one are broken, and that one after a repair', async () => {
    const tenants = (await Promise.all(Array.from({ length: 3 }, () => billing.tenant(100)))).sort();
    const broken = tenants[0]!;
    const period = '2030-09';
    const charges: Charge[] = [];
    for (const tenantId of tenants) charges.push(await gather(tenantId, 2n * CENT, `${period}-10T00:00:00Z`));
    const setCost = async (nanos: bigint) => {
      await database.query('SET session_replication_role = replica');
      await database.query('UPDATE billing.charge SET cost_nanos = $2 WHERE tenant_id = $1', [broken, String(nanos)]);
      await database.query('SET session_replication_role = DEFAULT');
    };
    await setCost(1n);
    expect(await closer.close({ period })).toEqual({ invoices: 2, empty: 0, waiting: 1 });
    expect(await paid(broken)).toEqual([]);
    for (const tenantId of tenants.slice(1)) expect(await paid(tenantId)).toEqual([[period, 2]]);
    await expect(closer.close({ period, tenantId: broken })).rejects.toThrow('1 charges of 1 nanos');
    await setCost(2n * CENT);
    expect(await closer.close({ period })).toEqual({ invoices: 1, empty: 0, waiting: 0 });
    expect(await paid(broken)).toEqual([[period, 2]]);
    await expectBooksToProve(billing, charges);
  });

  it('issues the invoice of a month with less than a cent left, even when the tenant is in debt', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [await gather(tenantId, 30n * CENT, '2030-10-05T00:00:00Z')];
    await billing.poster.postDue();
    charges.push(await gather(tenantId, CENT - 1n, '2030-10-06T00:00:00Z'));
    const debt = {
      type: 'adjustment',
      amountCents: -75n,
      source: 'manual',
      ref: 'debt',
      reason: 'chargeback',
    } as const;
    await transaction(billing.dataSource, async (tx) => {
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      await bookEntry(
        tx,
        books,
        { ...debt, period: '2030-10' },
        { ...options, by: undefined, action: 'credit.adjust' },
      );
    });
    expect(await billing.books(tenantId)).toMatchObject({ balance: -5, unposted: CENT - 1n });
    at('2030-11-01T00:00:00Z');
    expect(await closer.close({ period: '2030-10', tenantId })).toEqual({ invoices: 1, empty: 0, waiting: 0 });
    expect(await paid(tenantId)).toEqual([['2030-10', 30]]);
    // A whole cent waits for credit, as always.
    charges.push(await gather(tenantId, 1n, '2030-11-06T00:00:00Z'));
    at('2030-12-01T00:00:00Z');
    expect(await closer.close({ period: '2030-11', tenantId })).toEqual({ invoices: 0, empty: 0, waiting: 1 });
    await expectBooksToProve(billing, charges);
  });

  it('reads the sum of a month with many coverages from an index alone', async () => {
    const tenantId = await billing.tenant(1_000);
    const charges: Charge[] = [];
    for (let i = 0; i < 100; i++) {
      charges.push(await gather(tenantId, CENT + 1n, '2030-12-05T00:00:00Z'));
      await billing.poster.postDue();
    }
    at('2031-01-01T00:00:00Z');
    expect(await closer.close({ period: '2030-12', tenantId })).toEqual({ invoices: 1, empty: 0, waiting: 0 });
    expect(await paid(tenantId)).toEqual([['2030-12', 100]]);
    await expectBooksToProve(billing, charges);
    // The same sum as in assert_invoice. The planner would rather read all of so few rows.
    await database.query('VACUUM billing.coverage');
    await database.query('SET enable_seqscan = off');
    await database.query('SET enable_bitmapscan = off');
    const plan = await database.query<{ 'QUERY PLAN': string }>(
      'EXPLAIN SELECT sum(amount_cents) FROM billing.coverage WHERE tenant_id = $1 AND period = $2',
      [tenantId, '2030-12'],
    );
    expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toContain('Index Only Scan using coverage_range');
  });
});
