import { newId, type BalanceUpdate, type Charge } from '@tollgate/contracts';
import { AfterCommitPublisher, type Messages } from '@tollgate/messaging';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, charge, expectBooksToProve, sumNanos, useBilling, type TestBilling } from '../testing/billing.fixture';
import { openRejected } from './rejected';

// Real: PostgreSQL, and two gatherers at once, like two replicas.
const database = useTestDatabase();

describe('gathering', () => {
  const billing = useBilling(database, { postingIntervalMs: 60_000 });

  it('adds each charge once, in any order and with any repeats', async () => {
    const tenantId = await billing.tenant();
    const charges = Array.from({ length: 300 }, (_, i) => charge(tenantId, BigInt(i) * 12_345n));
    const batches = [
      charges.slice(0, 200),
      charges.slice(100, 300).reverse(),
      [...charges, ...charges],
      charges.slice(50, 60),
    ];
    for (const batch of batches) await billing.gatherer.gather(batch);
    await expectBooksToProve(billing, charges);
    expect((await billing.books(tenantId)).unposted).toBe(sumNanos(charges));
  });

  it('publishes the new balance and releases all holds of a batch; a repeat makes no new version', async () => {
    const tenantId = await billing.tenant(10);
    const first = charge(tenantId, 3n * CENT);
    const second = charge(tenantId, CENT / 2n);
    await billing.gatherer.gather([first]);
    await billing.gatherer.gather([first, second]);
    await billing.gatherer.gather([second]);
    const [topUp, ...rest] = await billing.updates(tenantId);
    expect(topUp).toEqual({ tenantId, version: '1', balanceNanos: String(10n * CENT), releases: [], suspended: false });
    expect(rest).toEqual([
      { tenantId, version: '2', balanceNanos: String(7n * CENT), releases: [first.id], suspended: false },
      {
        tenantId,
        version: '3',
        balanceNanos: String(6n * CENT + CENT / 2n),
        releases: [first.id, second.id],
        suspended: false,
      },
      { tenantId, version: '3', balanceNanos: String(6n * CENT + CENT / 2n), releases: [second.id], suspended: false },
    ]);
  });

  it('releases the holds at the next delivery if the process died between the commit and the publication', async () => {
    const tenantId = await billing.tenant(10);
    const first = charge(tenantId, 3n * CENT);
    const published: BalanceUpdate[] = [];
    let publish: (updates: readonly BalanceUpdate[]) => Promise<void>;
    const messages = { publish: (_topic: string, updates: readonly BalanceUpdate[]) => publish(updates) };
    const publisher = new AfterCommitPublisher(billing.dataSource, messages as unknown as Messages, {
      name: 'billing',
    });
    await new Promise<void>((died) => {
      publish = () => {
        died();
        return new Promise(() => {});
      };
      void billing.gatherer.gather([first], publisher);
    });
    expect(await billing.books(tenantId)).toMatchObject({ version: 2 });
    publish = async (updates) => void published.push(...updates);
    expect(await billing.gatherer.gather([first], publisher)).toMatchObject({ gathered: 0, repeated: 1 });
    expect(published).toMatchObject([{ tenantId, version: '2', releases: [first.id] }]);
    // That of the top-up.
    expect(await billing.updates(tenantId)).toHaveLength(1);
  });

  it('stays exact without deadlocks when consumers get overlapping batches of 100 tenants at once', async () => {
    const tenants = Array.from({ length: 100 }, () => newId('ten'));
    const charges = Array.from({ length: 3_000 }, (_, i) =>
      charge(tenants[(i * 37) % 100]!, BigInt((i * 7919) % 3_000_000)),
    );
    const before = await deadlocks();
    const batches: Charge[][] = [];
    for (let i = 0; i < charges.length; i += 300) {
      batches.push(charges.slice(i, i + 300), charges.slice(Math.max(0, i - 150), i + 150).reverse());
    }
    // Never more at once than there are connections.
    for (let i = 0; i < batches.length; i += 10)
      await Promise.all(batches.slice(i, i + 10).map((batch) => billing.gatherer.gather(batch)));
    await expectBooksToProve(billing, charges);
    expect(await deadlocks()).toBe(before);
  });

  it.each(['charge', 'tenant_month', 'tenant_books', 'outbox'])(
    'leaves nothing behind when it fails at %s, and succeeds on a retry',
    async (table) => {
      const tenantId = await billing.tenant();
      const charges = [charge(tenantId, 5n * CENT), charge(tenantId, 7n)];
      const stateBefore = await stateOf(billing, tenantId);
      // The last statement of this table's step fails, so everything before it in the transaction must be undone.
      await database.query(
        "CREATE FUNCTION billing.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the test breaks " +
          "here'; END $$",
      );
      await database.query(
        `CREATE TRIGGER zz_fail AFTER INSERT OR UPDATE ON billing.${table}
           FOR EACH ROW EXECUTE FUNCTION billing.fail()`,
      );
      await expect(billing.gatherer.gather(charges)).rejects.toThrow('the test breaks here');
      await database.query('DROP FUNCTION billing.fail() CASCADE');
      expect(await stateOf(billing, tenantId)).toEqual(stateBefore);
      await billing.gatherer.gather(charges);
      await expectBooksToProve(billing, charges);
    },
  );

  it('quarantines an invalid charge with its reason, and gathers the others', async () => {
    const tenantId = await billing.tenant();
    const good = charge(tenantId, CENT);
    const bad = [
      charge(tenantId, -1n),
      charge(tenantId, 1n, { costNanos: '1.5' }),
      charge(tenantId, 2n ** 63n),
      charge(tenantId, 1n, { endedAt: 'yesterday' }),
      charge(tenantId, 1n, { id: 'with\0nul' }),
      charge('ten_\ud800', 1n),
      charge('', 1n),
      null as unknown as Charge,
    ];
    const changed = { ...good, costNanos: '1' };
    expect(await billing.gatherer.gather([...bad, good, good, changed])).toMatchObject({
      gathered: 1,
      repeated: 1,
      rejected: 9,
    });
    const stranger = await billing.tenant();
    await billing.gatherer.gather([{ ...good, tenantId: stranger }]);
    await billing.gatherer.gather([changed]);
    await expectBooksToProve(billing, [good]);
    // The hold of a quarantined charge stays.
    expect((await billing.updates(stranger)).flatMap(({ releases }) => releases)).toEqual([]);
    expect((await billing.updates(tenantId)).flatMap(({ releases }) => releases)).toEqual([good.id]);
    const reasons = async () =>
      (await database.query<{ reason: string }>('SELECT reason FROM billing.rejected_charge')).map((row) => row.reason);
    expect((await reasons()).sort()).toEqual([
      'costNanos is no decimal string',
      'costNanos is no decimal string',
      'costNanos is out of range',
      'endedAt is no time',
      'id is no id',
      'id is no id',
      'tenantId is no id',
      'tenantId is no id',
      'this id was charged before with another tenant or cost',
      'this id was charged before with another tenant or cost',
    ]);

    expect(await openRejected(billing.dataSource.manager)).toBe(10);
    // Repeats, two of them in one batch, only count up and add no row.
    await Promise.all([
      billing.gatherer.gather([...bad, ...bad, changed]),
      billing.gatherer.gather([changed, ...[...bad].reverse()]),
    ]);
    expect(await reasons()).toHaveLength(10);
    expect(
      await database.query('SELECT times::int, count(*)::int FROM billing.rejected_charge GROUP BY 1 ORDER BY 1'),
    ).toEqual([
      { times: 1, count: 1 },
      { times: 4, count: 9 },
    ]);
    expect(
      await database.query(`SELECT FROM billing.rejected_charge WHERE first_at > last_at OR data LIKE '%\\u0000%'`),
    ).toHaveLength(1);
    // A dismissed charge stays closed, although it is redelivered.
    await database.query('UPDATE billing.rejected_charge SET dismissed_at = now()');
    await billing.gatherer.gather([...bad, changed]);
    expect(await openRejected(billing.dataSource.manager)).toBe(0);
  });

  it('takes a late charge only as a repeat: a known one releases its hold, an unknown one is quarantined', async () => {
    const tenantId = await billing.tenant();
    const [known, unknown] = [charge(tenantId, CENT), charge(tenantId, CENT)];
    await billing.gatherer.gather([known]);
    const late = [known, unknown].map((one) => ({ ...one, late: true as const }));
    expect(await billing.gatherer.gather(late)).toMatchObject({ gathered: 0, repeated: 1, rejected: 1 });
    await expectBooksToProve(billing, [known]);
    expect((await billing.updates(tenantId)).map(({ releases }) => releases)).toEqual([[], [known.id], [known.id]]);
    expect(
      await database.query(
        `SELECT data::json ->> 'id' AS id FROM billing.rejected_charge WHERE reason LIKE '%closed%'`,
      ),
    ).toEqual([{ id: unknown.id }]);
  });

  it('quarantines charges that the books refuse, keeps their holds, and gathers them after a repair', async () => {
    const [broken, ...healthy] = await Promise.all(Array.from({ length: 3 }, () => billing.tenant()));
    const taken = charge(broken!, CENT);
    await billing.gatherer.gather([taken]);
    // The month states fewer charges than it has, so the next charge gets a number that is taken.
    const setLastSeq = (seq: number) =>
      database.query('UPDATE billing.tenant_month SET last_seq = $2 WHERE tenant_id = $1', [broken, seq]);
    await setLastSeq(0);
    const refused = charge(broken!, CENT, { overrunNanos: '7' });
    const others = healthy.map((tenantId) => charge(tenantId, 2n * CENT));
    const batch = [refused, ...others, taken, null as unknown as Charge];
    for (const gathered of [2, 0])
      expect(await billing.gatherer.gather(batch)).toMatchObject({ gathered, repeated: 3 - gathered, rejected: 2 });
    const { id, tenantId, keyId, costNanos, overrunNanos, endedAt } = refused;
    expect(
      await database.query(
        `SELECT reason, times::int, data::jsonb FROM billing.rejected_charge WHERE data LIKE '%' || $1 || '%'`,
        [id],
      ),
    ).toEqual([
      {
        reason: 'the books of this tenant refuse it: 23505',
        times: 2,
        data: { id, tenantId, keyId, costNanos, overrunNanos, endedAt },
      },
    ]);
    const released = async () => (await billing.updates(broken!)).flatMap(({ releases }) => releases);
    expect(await released()).toEqual([taken.id, taken.id, taken.id]);
    await expectBooksToProve(billing, others);
    const open = await openRejected(billing.dataSource.manager);
    await setLastSeq(1);
    expect(await billing.gatherer.gather(batch)).toMatchObject({ gathered: 1, repeated: 3, rejected: 1 });
    expect(await released()).toContain(refused.id);
    expect(await openRejected(billing.dataSource.manager)).toBe(open - 1);
    await expectBooksToProve(billing, [taken, refused, ...others]);
  });

  it('numbers charges per month of their end in UTC, without a gap', async () => {
    const tenantId = await billing.tenant();
    const at = (endedAt: string) => charge(tenantId, 1n, { endedAt });
    const ends = [
      '2026-10-31T23:59:59.999Z',
      '2026-11-01T00:00:00.000Z',
      '2026-11-01T00:30:00.000+01:00',
      '2026-11-30T23:59:59.999Z',
    ];
    await billing.gatherer.gather(ends.map(at));
    await billing.gatherer.gather([at(ends[0]!)]);
    const rows = await database.query(
      'SELECT period, seq::int FROM billing.charge WHERE tenant_id = $1 ORDER BY period, seq',
      [tenantId],
    );
    expect(rows).toEqual([
      { period: '2026-10', seq: 1 },
      { period: '2026-10', seq: 2 },
      { period: '2026-10', seq: 3 },
      { period: '2026-11', seq: 1 },
      { period: '2026-11', seq: 2 },
    ]);
  });
});

async function deadlocks(): Promise<string> {
  const [row] = await database.query<{ deadlocks: string }>(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  );
  return row!.deadlocks;
}

async function stateOf(billing: TestBilling, tenantId: string) {
  return {
    books: await billing.books(tenantId),
    months: await database.query('SELECT * FROM billing.tenant_month WHERE tenant_id = $1', [tenantId]),
    charges: await database.query('SELECT id FROM billing.charge WHERE tenant_id = $1', [tenantId]),
    updates: await billing.updates(tenantId),
  };
}
