import { newId, type Charge } from '@tollgate/contracts';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { ChargeGatherer } from '../gather/charge-gatherer';
import { openBillingDatabase } from '../database';
import { billingSummary } from '../summary/billing-summary';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { InvoiceCloser } from './invoice-closer';

const HOUR_MS = 3_600_000;
const database = useTestDatabase();

describe('closing months', () => {
  const billing = useBilling(database);
  /** The test clock. A request ended at `ended` and is gathered at `clock`. */
  let clock = new Date();
  const now = () => clock;
  const options = { postingIntervalMs: 0, closeDelayMs: HOUR_MS, now };
  let closer: InvoiceCloser;
  let gatherer: ChargeGatherer;
  beforeAll(() => {
    closer = new InvoiceCloser(billing.dataSource, options);
    gatherer = new ChargeGatherer(billing.dataSource, { postingIntervalMs: 0, now });
  });
  const newTenants = async (count: number) => {
    const tenants: string[] = [];
    // Never more at once than there are connections.
    while (tenants.length < count)
      tenants.push(...(await Promise.all(Array.from({ length: 5 }, () => billing.tenant(100)))));
    return tenants;
  };
  const at = (text: string) => (clock = new Date(text));
  const gather = async (tenantId: string, nanos: bigint, endedAt: string): Promise<Charge> => {
    const one = charge(tenantId, nanos, { endedAt });
    await gatherer.gather([one]);
    return one;
  };
  const invoices = async (tenantId: string) =>
    (await billingSummary(billing.dataSource, { tenantId }, clock)).invoices.map((one) => [
      one.period,
      one.amountCents,
      one.status,
      one.accountingNumber,
    ]);
  const lastNumber = async () =>
    (await database.query<{ n: number }>('SELECT last_number::int AS n FROM billing.invoice_counter'))[0]!.n;
  const allNumbers = async () =>
    (await database.query<{ n: number }>('SELECT accounting_number::int AS n FROM billing.invoice ORDER BY 1')).map(
      (row) => row.n,
    );
  const expectGapless = async () => {
    const numbers = await allNumbers();
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(await lastNumber()).toBe(numbers.length);
    expect(
      await database.query(
        `SELECT i.accounting_number FROM billing.invoice i WHERE amount_cents <> (
           SELECT -sum(e.amount_cents)
           FROM billing.journal_entry e
           WHERE e.tenant_id = i.tenant_id AND e.period = i.period AND e.type = 'usage')`,
      ),
    ).toEqual([]);
  };

  it('closes a month one hour after its end in UTC, with the next number and the sum of its entries', async () => {
    const tenantId = await billing.tenant(1_000);
    const charges = [
      await gather(tenantId, 7n * CENT + 4n, '2030-01-31T23:59:59.999Z'),
      await gather(tenantId, 9n * CENT, '2030-02-01T00:00:00.000Z'),
    ];
    await billing.poster.postDue();
    charges.push(await gather(tenantId, 2n * CENT + 1n, '2030-01-31T23:00:00Z'));
    at('2030-02-01T00:59:59.999Z');
    await closer.closeDue();
    expect(await invoices(tenantId)).toEqual([
      ['2030-02', 9, 'open', null],
      ['2030-01', 7, 'open', null],
    ]);
    at('2030-02-01T01:00:00.000Z');
    const from = await lastNumber();
    expect(await closer.closeDue()).toEqual({ invoices: 1, empty: 0, waiting: 0 });
    expect(await closer.closeDue()).toEqual({ invoices: 0, empty: 0, waiting: 0 });
    expect(await invoices(tenantId)).toEqual([
      ['2030-02', 9, 'open', null],
      ['2030-01', 9, 'paid', from + 1],
    ]);
    const summary = await billingSummary(billing.dataSource, { tenantId }, clock);
    expect(summary.invoices[1]!.createdAt).toBe('2030-02-01T01:00:00.000Z');
    expect(await billing.books(tenantId)).toMatchObject({ balance: 1_000 - 18, unposted: 5n });
    await expectBooksToProve(billing, charges);
    await expectGapless();
  });

  it('bills a charge to the running month if its own is closed, even if the tenant had nothing in it', async () => {
    const [tenantId, idle] = [await billing.tenant(100), await billing.tenant(100)];
    const charges = [await gather(tenantId, 3n * CENT, '2030-02-20T00:00:00Z')];
    at('2030-03-01T01:00:00Z');
    await closer.closeDue();
    const paid = (await invoices(tenantId)).at(-1);
    expect(paid!.slice(0, 3)).toEqual(['2030-02', 3, 'paid']);
    charges.push(
      await gather(tenantId, 5n * CENT, '2030-02-28T23:59:59Z'),
      await gather(idle, 4n * CENT, '2030-02-28T23:59:59Z'),
    );
    await billing.poster.postDue();
    expect(await invoices(tenantId)).toEqual([['2030-03', 5, 'open', null], paid]);
    expect(await invoices(idle)).toEqual([['2030-03', 4, 'open', null]]);
    expect((await billing.entries(tenantId)).map((entry) => entry.period)).toEqual([
      expect.any(String),
      '2030-02',
      '2030-03',
    ]);
    await expectBooksToProve(billing, charges);
  });

  it('closes a month without debits without an invoice, and carries on less than a cent', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [
      await gather(tenantId, 0n, '2030-03-05T00:00:00Z'),
      await gather(tenantId, CENT - 1n, '2030-03-06T00:00:00Z'),
    ];
    at('2030-04-01T02:00:00Z');
    expect(await closer.closeDue()).toMatchObject({ empty: 1, waiting: 0 });
    expect(await invoices(tenantId)).toEqual([['2030-04', 0, 'open', null]]);
    charges.push(await gather(tenantId, 1n, '2030-04-01T02:00:00Z'));
    await billing.poster.postDue();
    expect(await invoices(tenantId)).toEqual([['2030-04', 1, 'open', null]]);
    expect(await billing.books(tenantId)).toMatchObject({ balance: 99, unposted: 0n });
    await expectBooksToProve(billing, charges);
    await expectGapless();
  });

  it('keeps a month open until the credit pays for its usage', async () => {
    const tenantId = await billing.tenant(10);
    const charges = [await gather(tenantId, 25n * CENT, '2030-04-10T00:00:00Z')];
    at('2030-05-01T02:00:00Z');
    expect(await closer.closeDue()).toMatchObject({ waiting: 1 });
    expect(await invoices(tenantId)).toEqual([
      ['2030-05', 0, 'open', null],
      ['2030-04', 0, 'open', null],
    ]);
    await billing.topUps.add({ tenantId, amountCents: 15, source: 'manual', ref: 'more' });
    expect(await closer.closeDue()).toMatchObject({ invoices: 1, waiting: 0 });
    expect(await invoices(tenantId)).toEqual([
      ['2030-05', 0, 'open', null],
      ['2030-04', 25, 'paid', await lastNumber()],
    ]);
    await expectBooksToProve(billing, charges);
  });

  it('several replicas close each month of 200 tenants once, and number the invoices without a gap', async () => {
    const tenants = await newTenants(200);
    await gatherer.gather(
      tenants.map((tenantId, i) => charge(tenantId, BigInt(1 + (i % 7)) * CENT, { endedAt: '2030-05-20T00:00:00Z' })),
    );
    at('2030-06-01T01:00:00Z');
    const from = await lastNumber();
    const other = await openBillingDatabase(database.url);
    try {
      const replicas = [closer, new InvoiceCloser(other, options), new InvoiceCloser(other, options)];
      const results = await Promise.all([...replicas, ...replicas].map((replica) => replica.closeDue()));
      const sum = results.reduce((total, result) => total + (result?.invoices ?? 0), 0);
      expect(sum + ((await closer.closeDue())?.invoices ?? 0)).toBe(200);
    } finally {
      await other.destroy();
    }
    const rows = await database.query<{ tenant_id: string; n: number }>(
      `SELECT tenant_id, accounting_number::int AS n FROM billing.invoice WHERE period = '2030-05' ORDER BY 2`,
    );
    expect(rows.map((row) => row.n)).toEqual(tenants.map((_, i) => from + 1 + i));
    expect(new Set(rows.map((row) => row.tenant_id))).toEqual(new Set(tenants));
    await expectGapless();
  });

  it('leaves whole tenants and no gap when it is killed in the middle, and the next closer continues', async () => {
    const tenants = (await newTenants(150)).sort();
    await gatherer.gather(tenants.map((tenantId) => charge(tenantId, CENT, { endedAt: '2030-06-20T00:00:00Z' })));
    at('2030-07-01T01:00:00Z');
    // Somebody locks the books of the last tenant, so the closer waits in the middle of its second page.
    const blocker = new Client({ connectionString: database.url, application_name: 'test' });
    await blocker.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT FROM billing.tenant_books WHERE tenant_id = $1 FOR UPDATE', [tenants.at(-1)]);
    const closing = closer.closeDue();
    const failed = expect(closing).rejects.toThrow();
    await eventually(async () => {
      const killed = await database.query(
        `SELECT pg_terminate_backend(pid)
         FROM pg_stat_activity
         WHERE application_name = 'tollgate-billing' AND datname = current_database()
           AND wait_event_type = 'Lock' AND query LIKE '%tenant_books%FOR UPDATE%'`,
      );
      expect(killed).toHaveLength(1);
    });
    await failed;
    await blocker.end();
    // All tenants before it are done, and nothing of the last one.
    const invoiced = async () =>
      (
        await database.query<{ tenant_id: string }>(
          `SELECT tenant_id FROM billing.invoice WHERE period = '2030-06' AND tenant_id = ANY($1) ORDER BY 1`,
          [tenants],
        )
      ).map((row) => row.tenant_id);
    expect(await invoiced()).toEqual(tenants.slice(0, -1));
    await expectGapless();
    await closer.closeDue();
    expect(await invoiced()).toEqual(tenants);
    await expectGapless();
  });

  it('loses, doubles and mixes nothing while requests of both months arrive', async () => {
    const tenants = await Promise.all(Array.from({ length: 8 }, () => billing.tenant(10_000)));
    at('2030-08-01T01:00:00Z');
    const charges: Charge[] = [];
    let writing = 4;
    const write = async (seed: number) => {
      for (let i = 0; i < 15; i++) {
        const batch = tenants.map((tenantId, t) =>
          charge(tenantId, BigInt((seed * 37 + i * 11 + t * 5) % 40) * 1_234_567n, {
            endedAt: (i + t + seed) % 2 === 0 ? '2030-07-31T23:59:59.999Z' : '2030-08-01T00:00:00.000Z',
          }),
        );
        charges.push(...batch);
        await gatherer.gather(batch);
        await gatherer.gather(batch);
        await billing.poster.postDue();
      }
      writing--;
    };
    const close = async () => {
      while (writing > 0) await closer.closeDue();
    };
    const read = async () => {
      while (writing > 0) {
        for (const tenantId of tenants) {
          const { balanceCents, entries, nextCursor } = await billingSummary(
            billing.dataSource,
            { tenantId, limit: 200 },
            clock,
          );
          expect(nextCursor).toBeNull();
          expect(entries.reduce((sum, entry) => sum + entry.amountCents, 0)).toBe(balanceCents);
        }
      }
    };
    await Promise.all([write(1), write(2), write(3), write(4), close(), read()]);
    await billing.poster.postDue();
    await closer.closeDue();
    await expectBooksToProve(billing, charges);
    await expectGapless();
    const mixed = await database.query(
      `SELECT e.id FROM billing.journal_entry e JOIN billing.coverage v ON v.entry_id = e.id
       JOIN billing.charge c ON c.tenant_id = v.tenant_id AND c.period = v.period
         AND c.seq BETWEEN v.from_seq AND v.to_seq
       WHERE e.tenant_id = ANY($1)
       GROUP BY e.id, e.period
       HAVING count(DISTINCT c.period) <> 1 OR min(c.period::text) <> e.period`,
      [tenants],
    );
    expect(mixed).toEqual([]);
  });

  it('closes a month that is over by hand, at once, for one tenant or all, but never the running month', async () => {
    const [tenantId, other] = [await billing.tenant(100), await billing.tenant(100)];
    for (const id of [tenantId, other]) await gather(id, CENT, '2030-08-20T00:00:00Z');
    at('2030-09-01T00:00:00.000Z');
    expect(await closer.close({ period: '2030-08', tenantId })).toEqual({ invoices: 1, empty: 0, waiting: 0 });
    expect((await invoices(tenantId)).at(-1)!.slice(0, 3)).toEqual(['2030-08', 1, 'paid']);
    expect((await invoices(other)).at(-1)!.slice(0, 3)).toEqual(['2030-08', 0, 'open']);
    expect((await closer.close({ period: '2030-08' })).invoices).toBeGreaterThanOrEqual(1);
    expect((await invoices(other)).at(-1)!.slice(0, 3)).toEqual(['2030-08', 1, 'paid']);
    for (const period of ['2030-09', '2031-01', '2030-13', '2030-8', '', 5 as unknown as string]) {
      await expect(closer.close({ period })).rejects.toMatchObject({ code: 'invalid_period' });
    }
    expect(await closer.close({ period: '2030-08', tenantId: newId('ten') })).toEqual({
      invoices: 0,
      empty: 0,
      waiting: 0,
    });
    await expectGapless();
  });

  it('a process whose clock is ahead of that of PostgreSQL closes no month that has not ended', async () => {
    const tenantId = await billing.tenant(1_000);
    await gather(tenantId, 3n * CENT, '2050-01-31T12:00:00.000Z');
    const [early, late] = [new Date('2050-01-31T13:00:00.000Z'), new Date('2051-06-01T00:00:00.000Z')];
    const closerAt = (own: Date, ofDatabase: Date) =>
      new InvoiceCloser(billing.dataSource, { ...options, now: () => own, databaseNow: async () => ofDatabase });
    // Nor does one that is behind.
    for (const one of [closerAt(late, early), closerAt(early, late)]) {
      await one.closeDue();
      await expect(one.close({ period: '2050-01' })).rejects.toMatchObject({ code: 'invalid_period' });
    }
    expect((await invoices(tenantId)).filter(([, , status]) => status !== 'open')).toEqual([]);
  });
});
