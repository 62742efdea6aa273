import { newId } from '@tollgate/contracts';
import { assertRuns, useTestDatabase } from '@tollgate/testing';
import * as fc from 'fast-check';
import { CENT, charge } from '../testing/billing.fixture';
import { useBudgets } from './budgets.fixture';

const SEED = 20_261_125;
const database = useTestDatabase();

describe('thresholds of budgets', () => {
  const t = useBudgets(database);

  it("records each threshold of a tenant's budget once a month", async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 1_000);
    await t.spend(tenantId, 499);
    expect(await t.events(tenantId)).toEqual([]);
    await t.spend(tenantId, 1);
    expect(await t.events(tenantId)).toEqual([
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
    await t.spend(tenantId, 1);
    await t.spend(tenantId, 499);
    expect(await t.percents(tenantId)).toEqual([50, 80, 100]);
    await t.spend(tenantId, 1);
    expect(await t.percents(tenantId)).toEqual([50, 80, 100]);
    expect(await t.budgets.get({ tenantId, keyId: null })).toMatchObject({
      spentNanos: String(1_001n * CENT),
      events: [50, 80, 100].map((thresholdPercent) => ({ thresholdPercent, budgetCents: 1_000 })),
    });
  });

  it('records no threshold while one nano is missing', async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 1_000);
    await t.gatherer.gather([charge(tenantId, 500n * CENT - 1n, { endedAt: t.at() })]);
    expect(await t.percents(tenantId)).toEqual([]);
    await t.gatherer.gather([charge(tenantId, 1n, { endedAt: t.at() })]);
    expect(await t.percents(tenantId)).toEqual([50]);
  });

  it("counts a key's spending by itself, against its own budget", async () => {
    const tenantId = await t.billing.tenant();
    const [a, b] = [newId('key'), newId('key')];
    await t.set(tenantId, 1_000);
    await t.set(tenantId, 100, a);
    await t.spend(tenantId, 60, { keyId: a });
    await t.spend(tenantId, 60, { keyId: b });
    await t.spend(tenantId, 40, { keyId: a });
    expect((await t.events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [a, 50],
      [a, 80],
      [a, 100],
    ]);
    expect(await t.budgets.get({ tenantId, keyId: null })).toMatchObject({ spentNanos: String(160n * CENT) });
    expect(await t.budgets.get({ tenantId, keyId: b })).toMatchObject({
      budgetCents: 'default',
      spentNanos: String(60n * CENT),
      events: [],
    });
  });

  it('counts a request in the month in which it ended, not in the month in which its charge arrived', async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 100);
    const late = charge(tenantId, 30n * CENT, { endedAt: '2026-05-31T23:59:59.999Z' });
    await t.spend(tenantId, 50);
    t.nowMs = Date.UTC(2026, 5, 1);
    await t.spend(tenantId, 60);
    await t.gatherer.gather([late]);
    expect((await t.events(tenantId)).map((event) => [event.period, event.thresholdPercent])).toEqual([
      ['2026-05', 50],
      ['2026-06', 50],
      ['2026-05', 80],
    ]);
    expect(await t.budgets.get({ tenantId, keyId: null })).toMatchObject({
      period: '2026-06',
      spentNanos: String(60n * CENT),
      events: [{ thresholdPercent: 50 }],
    });
  });

  it("watches the configuration's default budget until another one is set", async () => {
    const tenantId = await t.billing.tenant();
    const keyId = newId('key');
    const defaultBudgets = { tenantCents: 1_000, keyCents: 100 };
    await t.spend(tenantId, 80, { keyId, defaultBudgets });
    expect((await t.events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [keyId, 50],
      [keyId, 80],
    ]);
    await t.set(tenantId, 'none', keyId);
    await t.spend(tenantId, 420, { keyId, defaultBudgets });
    expect((await t.events(tenantId)).slice(2).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [null, 50],
    ]);
    await t.set(tenantId, 'default', keyId);
    expect((await t.events(tenantId)).slice(3)).toMatchObject([{ keyId, thresholdPercent: 100, budgetCents: 100 }]);
  });

  it('keeps the known defaults for a charge without any, and drops them for a charge with empty ones', async () => {
    const tenantId = await t.billing.tenant();
    const keyId = newId('key');
    const defaultBudgets = { tenantCents: 1_000, keyCents: 500 };
    await t.spend(tenantId, 100, { keyId, defaultBudgets });
    await t.spend(tenantId, 200, { keyId });
    const told = async () => (await t.events(tenantId)).map((event) => [event.keyId, event.thresholdPercent]);
    expect(await told()).toEqual([[keyId, 50]]);
    await t.gatherer.gather([
      t.charge(tenantId, 100, { keyId, defaultBudgets: { tenantCents: 1_000 } }),
      t.charge(tenantId, 100, { keyId }),
    ]);
    expect(await told()).toEqual([
      [keyId, 50],
      [null, 50],
    ]);
    await t.spend(tenantId, 500, { keyId, defaultBudgets: {} });
    await t.spend(tenantId, 500, { keyId });
    expect(await told()).toHaveLength(2);
  });

  it('records the thresholds that a lowered budget has already reached, at once', async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 10_000);
    await t.spend(tenantId, 900);
    expect(await t.percents(tenantId)).toEqual([]);
    await t.set(tenantId, 1_000);
    expect(await t.percents(tenantId)).toEqual([50, 80]);
  });

  it('records each threshold once a month, whatever the budget becomes, and again in the next month', async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 1_000);
    await t.spend(tenantId, 600);
    for (const cents of [1_001, 10_000, 'none', 'default', 1_000] as const) await t.set(tenantId, cents);
    expect(await t.percents(tenantId)).toEqual([50]);
    await t.set(tenantId, 2_000);
    await t.spend(tenantId, 999);
    expect(await t.percents(tenantId)).toEqual([50]);
    await t.spend(tenantId, 1);
    expect((await t.events(tenantId)).map((event) => [event.thresholdPercent, event.budgetCents])).toEqual([
      [50, 1_000],
      [80, 2_000],
    ]);
    t.nowMs = Date.UTC(2026, 5, 1);
    await t.spend(tenantId, 1_000);
    expect((await t.events(tenantId)).slice(2)).toMatchObject([{ period: '2026-06', thresholdPercent: 50 }]);
  });

  it('records thresholds that a change crosses, and spending reaches them again when it is raised', async () => {
    for (const lowered of [0, 1_000]) {
      const tenantId = await t.billing.tenant();
      await t.set(tenantId, 10_000);
      await t.spend(tenantId, 1_000);
      await t.set(tenantId, lowered);
      expect(await t.percents(tenantId)).toEqual([50, 80, 100]);
      // The same spending under the lowered budget, and another change below it, record nothing again.
      await t.spend(tenantId, 1);
      await t.set(tenantId, 1);
      expect(await t.percents(tenantId)).toEqual([50, 80, 100]);
      await t.set(tenantId, 10_000);
      expect(await t.percents(tenantId)).toEqual([50, 80, 100]);
      await t.spend(tenantId, 5_000);
      expect((await t.percents(tenantId)).slice(3)).toEqual([50]);
      // Recorded for the month now, so no change records it again.
      await t.set(tenantId, 'none');
      await t.set(tenantId, 7_000);
      expect((await t.percents(tenantId)).slice(4)).toEqual([80]);
      await t.set(tenantId, 10_000);
      await t.spend(tenantId, 4_000);
      expect((await t.percents(tenantId)).slice(5)).toEqual([80, 100]);
      await t.set(tenantId, 0);
      expect(await t.percents(tenantId)).toHaveLength(7);
    }
  });

  it('records thresholds of a budget of zero before any spending, and of the raised budget by spending', async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 0);
    await t.set(tenantId, 1_000);
    await t.spend(tenantId, 1_000);
    expect((await t.events(tenantId)).map((event) => [event.thresholdPercent, event.budgetCents])).toEqual([
      ...[50, 80, 100].map((percent) => [percent, 0]),
      ...[50, 80, 100].map((percent) => [percent, 1_000]),
    ]);
  });

  it('records each threshold once when two replicas reach it and change the budget at the same time', async () => {
    const replicas = [t.replica(), t.replica()];
    for (let round = 0; round < 10; round++) {
      const tenantId = await t.billing.tenant();
      await t.set(tenantId, 1_000);
      await Promise.all(
        replicas.flatMap((replica, i) => [
          replica.gatherer.gather([t.charge(tenantId, 500)]),
          replica.budgets.set({ tenantId, keyId: null, budgetCents: 900 + i }),
        ]),
      );
      expect((await t.percents(tenantId)).sort((a, b) => a - b)).toEqual([50, 80, 100]);
      await t.replica().gatherer.gather([t.charge(tenantId, 500)]);
      expect(await t.percents(tenantId)).toHaveLength(3);
    }
  });

  it('uses the thresholds of the budget, or those in the configuration at that moment', async () => {
    const tenantId = await t.billing.tenant();
    const keyId = newId('key');
    expect(await t.set(tenantId, 100, null, [10, 90])).toMatchObject({
      thresholdsPercent: [10, 90],
      hasOwnThresholds: true,
    });
    await t.set(tenantId, 100, keyId);
    t.configured = [20];
    await t.spend(tenantId, 25, { keyId });
    expect((await t.events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [null, 10],
      [keyId, 20],
    ]);
    expect(await t.set(tenantId, 100, null, null)).toMatchObject({ thresholdsPercent: [20], hasOwnThresholds: false });
    expect((await t.events(tenantId)).map((event) => [event.keyId, event.thresholdPercent])).toEqual([
      [null, 10],
      [keyId, 20],
      [null, 20],
    ]);
  });

  it('sums equal the charges and each threshold is recorded once, in any order, with any repeats', async () => {
    const replicas = [t.replica().gatherer, t.replica().gatherer];
    await assertRuns(
      fc.asyncProperty(
        fc.array(fc.record({ cents: fc.nat(60), key: fc.nat(1), again: fc.boolean(), replica: fc.nat(1) }), {
          minLength: 5,
          maxLength: 30,
        }),
        async (spent) => {
          const tenantId = await t.billing.tenant();
          const keys = [newId('key'), newId('key')];
          await t.set(tenantId, 500);
          await t.set(tenantId, 200, keys[0]);
          const charges = spent.map(({ cents, key }) => t.charge(tenantId, cents, { keyId: keys[key]! }));
          await Promise.all(
            replicas.map(async (one, replica) => {
              for (const [i, which] of spent.entries())
                if (which.replica === replica || which.again) await one.gather([charges[i]!]);
            }),
          );
          const all = spent.reduce((sum, { cents }) => sum + cents, 0);
          const first = spent.reduce((sum, { cents, key }) => sum + (key === 0 ? cents : 0), 0);
          const reached = (sum: number, budget: number) => [50, 80, 100].filter((p) => sum * 100 >= p * budget);
          const told = (await t.events(tenantId)).map((event) => [event.keyId, event.thresholdPercent]);
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
      { seed: SEED, leastRuns: 8, mostRuns: 25, timeBoxMs: 8_000 },
    );
  });

  it('an event can be neither changed nor deleted', async () => {
    const tenantId = await t.billing.tenant();
    await t.set(tenantId, 0);
    expect(await t.percents(tenantId)).toEqual([50, 80, 100]);
    for (const sql of ['UPDATE budget_event SET threshold_percent = 1', 'DELETE FROM budget_event'])
      await expect(t.billing.dataSource.query(sql)).rejects.toThrow(/permission denied|append-only/);
    for (const sql of ['UPDATE billing.budget_event SET threshold_percent = 1', 'DELETE FROM billing.budget_event'])
      await expect(database.query(sql)).rejects.toThrow(/append-only/);
  });
});
