import { newId, type Charge } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { uncoveredSeconds } from '../ledger/books-store';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { ChargeGatherer } from '../gather/charge-gatherer';
import { Poster } from './poster';
import { PostingLoop } from './posting-loop';

// Real: PostgreSQL, and concurrent posters, like replicas.
const database = useTestDatabase();
/** Longer than any machine stands still, and less than the longest deferral. */
const INTERVAL_MS = 240_000;

describe('posting', () => {
  const billing = useBilling(database);

  it('posts whole cents as one balanced entry that names exactly its charges, and carries the remainder', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [charge(tenantId, 2n * CENT + 1n), charge(tenantId, CENT), charge(tenantId, CENT / 2n)];
    await billing.gatherer.gather(charges);
    expect(await billing.poster.postDue()).toBe(1);
    const later = charge(tenantId, CENT / 2n);
    await billing.gatherer.gather([later]);
    await billing.poster.postDue();
    const [, first, second] = await billing.entries(tenantId);
    const period = charges[0]!.endedAt.slice(0, 7);
    expect(first).toMatchObject({ type: 'usage', amount: -3, period, ref: `${period}:1-3` });
    expect(second).toMatchObject({ type: 'usage', amount: -1, period, ref: `${period}:4-4` });
    expect(await billing.books(tenantId)).toEqual({ version: 5, balance: 96, unposted: 1n, due: false });
    await expectBooksToProve(billing, [...charges, later]);
    // From the ledger line to its requests, and back.
    const covered = await database.query<{ id: string }>(
      `SELECT c.id FROM billing.coverage v JOIN billing.charge c ON c.tenant_id = v.tenant_id AND c.period = v.period
         AND c.seq BETWEEN v.from_seq AND v.to_seq WHERE v.entry_id = $1 ORDER BY c.seq`,
      [first!.id],
    );
    expect(covered.map((row) => row.id)).toEqual(charges.map((one) => one.id));
    const [line] = await database.query(
      `SELECT v.entry_id AS id
       FROM billing.charge c
       JOIN billing.coverage v ON v.tenant_id = c.tenant_id AND v.period = c.period
         AND c.seq BETWEEN v.from_seq AND v.to_seq WHERE c.id = $1`,
      [later.id],
    );
    expect(line).toEqual({ id: second!.id });
    expect((await billing.updates(tenantId)).at(-1)).toMatchObject({
      version: '5',
      balanceNanos: String(96n * CENT - 1n),
      releases: [],
    });
  });

  it('measures the time from the end of the first request to the commit of each debit', async () => {
    const lag = async (series: string) => {
      const { values } = await metrics.getSingleMetric('tollgate_billing_debit_lag_seconds')!.get();
      const name = `tollgate_billing_debit_lag_seconds_${series}`;
      return values.find((value) => (value as { metricName?: string }).metricName === name)!.value;
    };
    const before = { count: await lag('count'), sum: await lag('sum') };
    const tenantId = await billing.tenant(100);
    const now = new Date();
    const monthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth());
    // Just after the turn of a month, both charges end before it: a debit is of one month.
    const fromMs = now.getTime() - 40_000 < monthMs ? monthMs - 1 : now.getTime();
    const ended = (seconds: number) => ({ endedAt: new Date(fromMs - seconds * 1_000).toISOString() });
    // The first charge does not make a cent. It waits for the second.
    await billing.gatherer.gather([charge(tenantId, CENT / 2n, ended(40))]);
    await billing.poster.postDue();
    expect(await lag('count')).toBe(before.count);
    await billing.gatherer.gather([charge(tenantId, CENT, ended(10))]);
    await billing.poster.postDue();
    expect(await lag('count')).toBe(before.count + 1);
    const seconds = (await lag('sum')) - before.sum;
    expect(seconds).toBeGreaterThanOrEqual(40);
    expect(seconds).toBeLessThanOrEqual(40 + (Date.now() + 1 - fromMs) / 1_000);
  });

  it('makes two entries from charges of two months, and carries the first remainder into the second', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [
      charge(tenantId, CENT + CENT / 2n, { endedAt: '2026-11-01T00:00:00.000Z' }),
      charge(tenantId, 2n * CENT + CENT / 2n, { endedAt: '2026-10-31T23:59:59.999Z' }),
    ];
    await billing.gatherer.gather(charges);
    await billing.poster.postDue();
    const [, october, november] = await billing.entries(tenantId);
    expect(october).toMatchObject({ amount: -2, period: '2026-10', ref: '2026-10:1-1' });
    expect(november).toMatchObject({ amount: -2, period: '2026-11', ref: '2026-11:1-1' });
    await expectBooksToProve(billing, charges);
  });

  it('carries the end of a month that makes no cent into the next month, by a coverage without an entry', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [
      charge(tenantId, CENT / 4n, { endedAt: '2026-10-31T23:59:59.999Z' }),
      charge(tenantId, CENT, { endedAt: '2026-11-01T00:00:00.000Z' }),
    ];
    await billing.gatherer.gather(charges);
    await billing.poster.postDue();
    expect((await billing.entries(tenantId)).slice(1)).toEqual([
      expect.objectContaining({ amount: -1, period: '2026-11' }),
    ]);
    expect((await billing.books(tenantId)).unposted).toBe(CENT / 4n);
    await expectBooksToProve(billing, charges);
  });

  it('posts each tenant once when many replicas find it due at the same time', async () => {
    const tenants = await Promise.all(Array.from({ length: 30 }, () => billing.tenant(1_000)));
    const charges: Charge[] = [];
    for (let round = 0; round < 4; round++) {
      const batch = tenants.map((tenantId, i) => charge(tenantId, BigInt(i + 1) * 4_999_999n));
      charges.push(...batch);
      await Promise.all([
        billing.gatherer.gather(batch),
        ...Array.from({ length: 4 }, () => billing.poster.postDue()),
        billing.gatherer.gather(batch),
      ]);
    }
    await Promise.all(Array.from({ length: 4 }, () => billing.poster.postDue()));
    await expectBooksToProve(billing, charges);
    for (const tenantId of tenants) expect(await billing.books(tenantId)).toMatchObject({ due: false });
  });

  it('posts what the credit pays for and never takes a balance below zero; a top-up pays the remainder', async () => {
    const tenantId = await billing.tenant(3);
    const charges = [charge(tenantId, 2n * CENT), charge(tenantId, 2n * CENT + 1n)];
    await billing.gatherer.gather(charges);
    expect(await billing.poster.postDue()).toBe(1);
    expect((await billing.entries(tenantId)).map(({ amount, ref }) => [amount, ref.slice(-3)])).toEqual([
      [3, 'rst'],
      [-2, '1-1'],
    ]);
    expect(await billing.books(tenantId)).toMatchObject({ balance: 1, unposted: 2n * CENT + 1n, due: false });
    expect((await billing.updates(tenantId)).at(-1)).toMatchObject({ balanceNanos: String(-CENT - 1n) });
    // A charge is covered whole, so nothing more can be posted before something changes.
    expect(await billing.poster.postDue()).toBe(0);
    await billing.topUps.add({ tenantId, amountCents: 5, source: 'manual', ref: 'second' });
    expect(await billing.poster.postDue()).toBe(1);
    expect(await billing.books(tenantId)).toMatchObject({ balance: 4, unposted: 1n, due: false });
    await expectBooksToProve(billing, charges);
  });

  it('takes the balance to zero when more has gathered, and measures how long the remainder waits', async () => {
    const tenantId = await billing.tenant(127);
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
    // 9.27 in 1,854 requests of half a cent, some of them in the month before.
    const before = charge(tenantId, CENT / 2n, { endedAt: '2026-01-31T23:00:00.000Z' });
    const charges = [before, ...Array.from({ length: 1_853 }, () => charge(tenantId, CENT / 2n, { endedAt: at(30) }))];
    expect(await uncoveredSeconds(billing.dataSource.manager)).toBe(0);
    await billing.gatherer.gather(charges);
    expect(await billing.poster.postDue()).toBe(1);
    const waiting = 927n * CENT - 127n * CENT;
    expect(await billing.books(tenantId)).toMatchObject({ balance: 0, unposted: waiting, due: false });
    const seconds = await uncoveredSeconds(billing.dataSource.manager);
    expect(seconds).toBeGreaterThanOrEqual(1_800);
    await expectBooksToProve(billing, charges);
    for (const [cents, left] of [
      [300, 0],
      [600, 100],
    ] as const) {
      await billing.topUps.add({ tenantId, amountCents: cents, source: 'manual', ref: `${cents}` });
      await billing.poster.postDue();
      expect(await billing.books(tenantId)).toMatchObject({ balance: left, due: false });
      await expectBooksToProve(billing, charges);
    }
    expect(await uncoveredSeconds(billing.dataSource.manager)).toBe(0);
  });

  it('posts all other tenants when the books of one are broken, and retries that one later', async () => {
    const tenants = await Promise.all(Array.from({ length: 5 }, () => billing.tenant()));
    const charges = tenants.map((tenantId) => charge(tenantId, 2n * CENT));
    await billing.gatherer.gather(charges);
    const broken = tenants[2]!;
    await database.query('SET session_replication_role = replica');
    await database.query('UPDATE billing.charge SET cost_nanos = 1 WHERE tenant_id = $1', [broken]);
    await database.query('SET session_replication_role = DEFAULT');
    expect(await billing.poster.postDue()).toBe(4);
    expect(await billing.poster.postDue()).toBe(0);
    expect((await billing.entries(broken)).map((entry) => entry.type)).toEqual(['topup']);
    const healthy = tenants.filter((tenantId) => tenantId !== broken);
    for (const tenantId of healthy) expect(await billing.books(tenantId)).toMatchObject({ balance: 99_998 });
    const [row] = await database.query<{ later: boolean }>(
      `SELECT due_at > now() AS later FROM billing.tenant_books WHERE tenant_id = $1`,
      [broken],
    );
    expect(row).toEqual({ later: true });
    await expectBooksToProve(
      billing,
      charges.filter((one) => one.tenantId !== broken),
    );
    await database.query('UPDATE billing.tenant_books SET due_at = NULL WHERE tenant_id = $1', [broken]);
  });

  it.each(['journal_entry', 'posting', 'coverage', 'tenant_month', 'tenant_books', 'outbox'])(
    'leaves nothing behind when it fails at %s, and the work stays due',
    async (table) => {
      const tenantId = await billing.tenant();
      const charges = [charge(tenantId, 5n * CENT + 3n)];
      await billing.gatherer.gather(charges);
      const before = {
        books: await billing.books(tenantId),
        entries: await billing.entries(tenantId),
        updates: await billing.updates(tenantId),
      };
      await database.query(
        "CREATE FUNCTION billing.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the test breaks " +
          "here'; END $$",
      );
      await database.query(
        `CREATE TRIGGER zz_fail AFTER INSERT OR UPDATE ON billing.${table}
           FOR EACH ROW EXECUTE FUNCTION billing.fail()`,
      );
      await expect(billing.poster.postDue()).rejects.toThrow('the test breaks here');
      await database.query('DROP FUNCTION billing.fail() CASCADE');
      expect({
        books: await billing.books(tenantId),
        entries: await billing.entries(tenantId),
        updates: await billing.updates(tenantId),
      }).toEqual(before);
      expect(await billing.poster.postDue()).toBe(1);
      await expectBooksToProve(billing, charges);
    },
  );
});

describe('the posting interval', () => {
  const billing = useBilling(database, { postingIntervalMs: INTERVAL_MS });

  it('posts the first cent at once, and the next after the interval, on any replica', async () => {
    const tenantId = await billing.tenant();
    expect(await billing.gatherer.gather([charge(tenantId, CENT)])).toMatchObject({ dueInMs: 0 });
    expect(await billing.poster.postDue()).toBe(1);
    const { dueInMs } = await billing.gatherer.gather([charge(tenantId, CENT)]);
    expect(dueInMs).toBeGreaterThan(0);
    expect(dueInMs).toBeLessThanOrEqual(INTERVAL_MS);
    expect(await billing.poster.postDue()).toBe(0);
    await billing.gatherer.gather([charge(tenantId, CENT)]);
    const dueAfter = 'SELECT due_at - last_posted_at = $2 AS interval FROM billing.tenant_books WHERE tenant_id = $1';
    const interval = `${INTERVAL_MS} milliseconds`;
    expect(await database.query(dueAfter, [tenantId, interval])).toEqual([{ interval: true }]);
    // The interval passes.
    await database.query(
      `UPDATE billing.tenant_books SET due_at = due_at - $2::interval, last_posted_at = last_posted_at - $2::interval
        WHERE tenant_id = $1`,
      [tenantId, interval],
    );
    expect(await billing.poster.postDue()).toBe(1);
    expect((await billing.entries(tenantId)).slice(1).map(({ amount }) => amount)).toEqual([-1, -2]);
  });

  it('is not longer, and what is due does not wait, if the clock of PostgreSQL was ahead for an hour', async () => {
    const tenantId = await billing.tenant();
    await billing.gatherer.gather([charge(tenantId, CENT)]);
    expect(await billing.poster.postDue()).toBe(1);
    const written = (column: string) =>
      database.query(`UPDATE billing.tenant_books SET ${column} = now() + interval '1 hour' WHERE tenant_id = $1`, [
        tenantId,
      ]);
    await written('last_posted_at');
    const { dueInMs } = await billing.gatherer.gather([charge(tenantId, CENT)]);
    expect(dueInMs).toBeGreaterThan(0);
    expect(dueInMs).toBeLessThanOrEqual(INTERVAL_MS);
    await written('due_at');
    expect(await billing.poster.postDue()).toBe(1);
    expect(await billing.books(tenantId)).toMatchObject({ balance: 99_998, due: false });
  });

  it('does nothing until a whole cent has gathered', async () => {
    const tenantId = await billing.tenant();
    expect(await billing.gatherer.gather([charge(tenantId, CENT - 1n)])).toMatchObject({ dueInMs: null });
    expect((await billing.books(tenantId)).due).toBe(false);
    expect(await billing.gatherer.gather([charge(tenantId, 1n)])).toMatchObject({ dueInMs: 0 });
  });
});

describe('the posting loop', () => {
  const billing = useBilling(database, { postingIntervalMs: INTERVAL_MS });

  it('posts what falls due, and every whole cent when it stops, due or not', async () => {
    const posted = jest.fn();
    const options = { postingIntervalMs: INTERVAL_MS };
    const loop = new PostingLoop(new Poster(billing.dataSource, options), posted);
    const gatherer = new ChargeGatherer(billing.dataSource, options);
    const tenantId = newId('ten');
    await billing.topUps.add({ tenantId, amountCents: 100, source: 'manual', ref: '1' });
    loop.onApplicationBootstrap();
    const charges = [charge(tenantId, CENT), charge(tenantId, 2n * CENT + 5n)];
    const { dueInMs } = await gatherer.gather([charges[0]!]);
    loop.wakeIn(dueInMs!);
    await eventually(async () => expect(await billing.books(tenantId)).toMatchObject({ balance: 99 }));
    const next = await gatherer.gather([charges[1]!]);
    expect(next.dueInMs).toBeGreaterThan(20_000);
    loop.wakeIn(next.dueInMs!);
    await loop.beforeApplicationShutdown();
    expect(await billing.books(tenantId)).toMatchObject({ balance: 97, unposted: 5n });
    expect(posted).toHaveBeenCalled();
    await expectBooksToProve(billing, charges);
  });
});
