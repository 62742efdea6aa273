import { newId, type BudgetEvent, type Charge, type SetBudget } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import * as fc from 'fast-check';
import { ChargeGatherer } from '../consume/charge-gatherer';
import { CENT, charge, useBilling } from '../testing/billing.suite';
import { allBudgetNews } from './budget-rows';
import { Budgets } from './budgets';

const SEED = 20_261_125;
const database = useTestDatabase();

describe('budgets', () => {
  const billing = useBilling(database);
  let nowMs = Date.UTC(2026, 4, 15, 12);
  let configured: readonly number[] = [50, 80, 100];
  let budgets: Budgets;
  let gatherer: ChargeGatherer;

  beforeAll(() => {
    const thresholdsPercent = () => configured;
    budgets = new Budgets(billing.dataSource, billing.messages, { thresholdsPercent, now: () => nowMs });
    gatherer = new ChargeGatherer(billing.dataSource, { postingIntervalMs: 0, thresholdsPercent });
  });
  beforeEach(() => {
    nowMs = Date.UTC(2026, 4, 15, 12);
    configured = [50, 80, 100];
  });

  const at = () => new Date(nowMs).toISOString();
  const spend = (tenantId: string, cents: number, more: Partial<Charge> = {}) =>
    gatherer.gather([charge(tenantId, BigInt(cents) * CENT, { endedAt: at(), ...more })]);
  const set = (tenantId: string, budgetCents: SetBudget, keyId: string | null = null, thresholds?: number[] | null) =>
    budgets.set({
      tenantId,
      keyId,
      budgetCents,
      ...(thresholds !== undefined && { thresholdsPercent: thresholds }),
    });
  /** What goes to the topic, oldest first. */
  const events = async (tenantId: string): Promise<BudgetEvent[]> =>
    (
      await database.query<{ data: BudgetEvent }>(
        `SELECT data FROM billing.outbox WHERE topic = 'budget-events' AND data->>'tenantId' = $1 ORDER BY id`,
        [tenantId],
      )
    ).map((row) => row.data);
  const percents = async (tenantId: string) => (await events(tenantId)).map((event) => event.thresholdPercent);

  it('records each threshold once in a month, for the budget of a tenant', async () => {
    const tenantId = await billing.tenant();
    await set(tenantId, 1_000);
    await spend(tenantId, 499);
    expect(await events(tenantId)).toEqual([]);
    await spend(tenantId, 1);
    expect(await events(tenantId)).toEqual([
      {
        id: expect.stringMatching(/^evt_/),
        tenantId,
        keyId: null,
        period: '2026-05',
        thresholdPercent: 50,
        budgetCents: 1_000,
        spentNanos: String(500n * CENT),
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      },
    ]);
    await spend(tenantId, 1);
    await spend(tenantId, 499);
    expect(await percents(tenantId)).toEqual([50, 80, 100]);
    await spend(tenantId, 1);
    expect(await percents(tenantId)).toEqual([50, 80, 100]);
    expect(await budgets.get({ tenantId, keyId: null })).toMatchObject({
      spentNanos: String(1_001n * CENT),
      events: [50, 80, 100].map((thresholdPercent) => ({ thresholdPercent, budgetCents: 1_000 })),
    });
  });

  it('one nano below a threshold is below it', async () => {
    const tenantId = await billing.tenant();
    await set(tenantId, 1_000);
    await gatherer.gather([charge(tenantId, 500n * CENT - 1n, { endedAt: at() })]);
    expect(await percents(tenantId)).toEqual([]);
    await gatherer.gather([charge(tenantId, 1n, { endedAt: at() })]);
    expect(await percents(tenantId)).toEqual([50]);
  });

  it('a key has its own sum and its own budget beside the tenant\u2019s', async () => {
    const tenantId = await billing.tenant();
    const [a, b] = [newId('key'), newId('key')];
    await set(tenantId, 1_000);
    await set(tenantId, 100, a);
    await spend(tenantId, 60, { keyId: a });
    await spend(tenantId, 60, { keyId: b });
    await spend(tenantId, 40, { keyId: a });
    expect((await events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [a, 50],
      [a, 80],
      [a, 100],
    ]);
    expect(await budgets.get({ tenantId, keyId: null })).toMatchObject({ spentNanos: String(160n * CENT) });
    expect(await budgets.get({ tenantId, keyId: b })).toMatchObject({
      budgetCents: 'default',
      spentNanos: String(60n * CENT),
      events: [],
    });
  });

  it('a month begins at zero, by the time at which requests ended and not at which their charges came', async () => {
    const tenantId = await billing.tenant();
    await set(tenantId, 100);
    const late = charge(tenantId, 30n * CENT, { endedAt: '2026-05-31T23:59:59.999Z' });
    await spend(tenantId, 50);
    nowMs = Date.UTC(2026, 5, 1);
    await spend(tenantId, 60);
    await gatherer.gather([late]);
    expect((await events(tenantId)).map((event) => [event.period, event.thresholdPercent])).toEqual([
      ['2026-05', 50],
      ['2026-06', 50],
      ['2026-05', 80],
    ]);
    expect(await budgets.get({ tenantId, keyId: null })).toMatchObject({
      period: '2026-06',
      spentNanos: String(60n * CENT),
      events: [{ thresholdPercent: 50 }],
    });
  });

  it('what the configuration gives by default is watched too, until another is set', async () => {
    const tenantId = await billing.tenant();
    const keyId = newId('key');
    const defaultBudgets = { tenantCents: 1_000, keyCents: 100 };
    await spend(tenantId, 80, { keyId, defaultBudgets });
    expect((await events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [keyId, 50],
      [keyId, 80],
    ]);
    await set(tenantId, 'none', keyId);
    await spend(tenantId, 420, { keyId, defaultBudgets });
    expect((await events(tenantId)).slice(2).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [null, 50],
    ]);
    await set(tenantId, 'default', keyId);
    expect((await events(tenantId)).slice(3)).toMatchObject([{ keyId, thresholdPercent: 100, budgetCents: 100 }]);
  });

  it('a budget that is lowered below what is spent has reached its thresholds at once; the same amount again is not told again', async () => {
    const tenantId = await billing.tenant();
    await set(tenantId, 10_000);
    await spend(tenantId, 900);
    expect(await percents(tenantId)).toEqual([]);
    await set(tenantId, 1_000);
    expect(await percents(tenantId)).toEqual([50, 80]);
    await set(tenantId, 10_000);
    await set(tenantId, 1_000);
    await spend(tenantId, 50);
    expect(await percents(tenantId)).toEqual([50, 80]);
    await spend(tenantId, 50);
    expect(await percents(tenantId)).toEqual([50, 80, 100]);
  });

  it('thresholds are those of the budget, or of the configuration as it is at that moment', async () => {
    const tenantId = await billing.tenant();
    const keyId = newId('key');
    expect(await set(tenantId, 100, null, [10, 90])).toMatchObject({
      thresholdsPercent: [10, 90],
      hasOwnThresholds: true,
    });
    await set(tenantId, 100, keyId);
    configured = [20];
    await spend(tenantId, 25, { keyId });
    expect((await events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [null, 10],
      [keyId, 20],
    ]);
    expect(await set(tenantId, 100, null, null)).toMatchObject({ thresholdsPercent: [20], hasOwnThresholds: false });
    expect((await events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [null, 10],
      [keyId, 20],
      [null, 20],
    ]);
  });

  it('a change goes out as news with a version of its own, and moves no money; the same again is no change', async () => {
    const tenantId = await billing.tenant();
    const keyId = newId('key');
    const { version } = await billing.books(tenantId);
    await set(tenantId, 500);
    await set(tenantId, 500);
    await set(tenantId, 'none', keyId);
    await set(tenantId, 700);
    await set(tenantId, 'default', keyId);
    const news = (await billing.news(tenantId)).slice(1);
    expect(news.flatMap((one) => one.budgets)).toEqual([
      { keyId: null, version: '1', budgetNanos: String(500n * CENT) },
      { keyId, version: '1', budgetNanos: 'none' },
      { keyId: null, version: '2', budgetNanos: String(700n * CENT) },
      { keyId, version: '2', budgetNanos: 'default' },
    ]);
    expect(new Set(news.map((one) => one.version))).toEqual(new Set([String(version)]));
    expect(await allBudgetNews(billing.dataSource.manager, tenantId)).toEqual([
      { keyId: null, version: '2', budgetNanos: String(700n * CENT) },
      { keyId, version: '2', budgetNanos: 'default' },
    ]);
  });

  it('lists the keys that have their own, in pages', async () => {
    const tenantId = await billing.tenant();
    const keys = Array.from({ length: 5 }, () => newId('key'));
    for (const keyId of keys) await set(tenantId, 100, keyId);
    await set(tenantId, 'default', keys[1]!);
    await set(tenantId, 100);
    const first = await budgets.keys({ tenantId, limit: 2 });
    expect(first.data.map(({ keyId }) => keyId)).toEqual([keys[0], keys[2]]);
    const second = await budgets.keys({ tenantId, limit: 2, after: first.nextCursor! });
    expect(second.data.map(({ keyId }) => keyId)).toEqual([keys[3], keys[4]]);
    expect(second.nextCursor).toBeNull();
    await expect(budgets.keys({ tenantId, limit: 0 })).rejects.toMatchObject({ code: 'invalid_parameter' });
    await expect(budgets.keys({ tenantId, after: 'x' })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  it.each<[string, object, string]>([
    ['an unknown tenant', { tenantId: 'unknown' }, 'not_found'],
    ['a tenant id that is none', { tenantId: 'x' }, 'not_found'],
    ['a key id that is none', { keyId: 'x' }, 'not_found'],
    ['a negative amount', { budgetCents: -1 }, 'invalid_budget'],
    ['a fraction', { budgetCents: 1.5 }, 'invalid_budget'],
    ['an amount beyond 2^53', { budgetCents: 2 ** 53 }, 'invalid_budget'],
    ['an amount as text', { budgetCents: '5' }, 'invalid_budget'],
    ['no thresholds at all', { thresholdsPercent: [] }, 'invalid_thresholds'],
    ['thresholds out of order', { thresholdsPercent: [80, 50] }, 'invalid_thresholds'],
    ['a threshold twice', { thresholdsPercent: [50, 50] }, 'invalid_thresholds'],
    ['a threshold of zero', { thresholdsPercent: [0] }, 'invalid_thresholds'],
    ['a threshold above the budget', { thresholdsPercent: [101] }, 'invalid_thresholds'],
  ])('refuses %s, and writes nothing', async (_, wrong, code) => {
    const tenantId = await billing.tenant();
    const unknown = await billing.tenant();
    billing.unknownTenants.add(unknown);
    const asked = { tenantId, keyId: null, budgetCents: 5, ...wrong };
    if (asked.tenantId === 'unknown') asked.tenantId = unknown;
    const before = await database.query('SELECT count(*) FROM billing.outbox');
    await expect(budgets.set(asked)).rejects.toMatchObject({ code });
    expect(await database.query('SELECT count(*) FROM billing.outbox')).toEqual(before);
    expect(await allBudgetNews(billing.dataSource.manager, asked.tenantId)).toEqual([]);
  });

  it('whatever comes in whatever order, repeated and from several replicas: sums are those of the charges, each threshold is recorded once', async () => {
    const replicas = [gatherer, new ChargeGatherer(billing.dataSource, { postingIntervalMs: 0 })];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ cents: fc.nat(60), key: fc.nat(1), again: fc.boolean(), replica: fc.nat(1) }), {
          minLength: 5,
          maxLength: 30,
        }),
        async (spent) => {
          const tenantId = await billing.tenant();
          const keys = [newId('key'), newId('key')];
          await set(tenantId, 500);
          await set(tenantId, 200, keys[0]!);
          const charges = spent.map(({ cents, key }) =>
            charge(tenantId, BigInt(cents) * CENT, { keyId: keys[key]!, endedAt: at() }),
          );
          await Promise.all(
            replicas.map(async (one, replica) => {
              for (const [i, which] of spent.entries())
                if (which.replica === replica || which.again) await one.gather([charges[i]!]);
            }),
          );
          const all = spent.reduce((sum, { cents }) => sum + cents, 0);
          const first = spent.reduce((sum, { cents, key }) => sum + (key === 0 ? cents : 0), 0);
          const reached = (sum: number, budget: number) => [50, 80, 100].filter((p) => sum * 100 >= p * budget);
          const told = (await events(tenantId)).map((event) => [event.keyId, event.thresholdPercent]);
          const expected = [
            ...reached(all, 500).map((percent) => [null, percent]),
            ...reached(first, 200).map((percent) => [keys[0], percent]),
          ];
          expect(told).toHaveLength(expected.length);
          expect(told).toEqual(expect.arrayContaining(expected));
          const rows = await database.query<{ key_id: string; spent: string; charged: string }>(
            `SELECT m.key_id, m.spent_nanos AS spent, (SELECT sum(cost_nanos) FROM billing.charge c
               WHERE c.tenant_id = m.tenant_id AND m.key_id IN ('', c.key_id)) AS charged
             FROM billing.budget_month m WHERE m.tenant_id = $1`,
            [tenantId],
          );
          for (const row of rows) expect([row.key_id, row.spent]).toEqual([row.key_id, row.charged]);
        },
      ),
      { seed: SEED, numRuns: 25, interruptAfterTimeLimit: 8_000 },
    );
  });

  it('a recorded event can be neither changed nor deleted', async () => {
    const tenantId = await billing.tenant();
    await set(tenantId, 0);
    expect(await percents(tenantId)).toEqual([50, 80, 100]);
    for (const sql of ['UPDATE budget_event SET threshold_percent = 1', 'DELETE FROM budget_event'])
      await expect(billing.dataSource.query(sql)).rejects.toThrow(/permission denied|append-only/);
    for (const sql of ['UPDATE billing.budget_event SET threshold_percent = 1', 'DELETE FROM billing.budget_event'])
      await expect(database.query(sql)).rejects.toThrow(/append-only/);
  });
});
