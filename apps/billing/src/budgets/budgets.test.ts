import { PostgresAdmissionStore } from '@tollgate/admission';
import { newId, UnavailableError } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT } from '../testing/billing.fixture';
import { allBudgetUpdates } from './budget-rows';
import { useBudgets } from './budgets.fixture';

const database = useTestDatabase();

describe('budgets', () => {
  const t = useBudgets(database);

  it('publishes each change with a version of its own and moves no money, and ignores a repeat', async () => {
    const tenantId = await t.billing.tenant();
    const keyId = newId('key');
    const { version } = await t.billing.books(tenantId);
    await t.set(tenantId, 500);
    await t.set(tenantId, 500);
    await t.set(tenantId, 'none', keyId);
    await t.set(tenantId, 700);
    await t.set(tenantId, 'default', keyId);
    const updates = (await t.billing.updates(tenantId)).slice(1);
    expect(updates.flatMap((one) => one.budgets)).toEqual([
      { keyId: null, version: '1', budgetNanos: String(500n * CENT) },
      { keyId, version: '1', budgetNanos: 'none' },
      { keyId: null, version: '2', budgetNanos: String(700n * CENT) },
      { keyId, version: '2', budgetNanos: 'default' },
    ]);
    expect(new Set(updates.map((one) => one.version))).toEqual(new Set([String(version)]));
    expect(await allBudgetUpdates(t.billing.dataSource.manager, tenantId)).toEqual([
      { keyId: null, version: '2', budgetNanos: String(700n * CENT) },
      { keyId, version: '2', budgetNanos: 'default' },
    ]);
  });

  it('answers once the change is in force, and commits but refuses it while the store is unavailable', async () => {
    const tenantId = await t.billing.tenant();
    const inForce = () =>
      database.query('SELECT budget_nanos AS nanos FROM admission.tenant WHERE tenant_id = $1', [tenantId]);
    await t.set(tenantId, 500);
    expect(await inForce()).toEqual([{ nanos: String(500n * CENT) }]);

    const away = new PostgresAdmissionStore({ url: 'postgres://nobody@127.0.0.1:1/none' });
    const told = (await t.billing.updates(tenantId)).length;
    const { budgets } = t.replica(away);
    const set = { tenantId, keyId: null, budgetCents: 700 };
    for (let time = 0; time < 2; time++) await expect(budgets.set(set)).rejects.toThrow(UnavailableError);
    await away.close();
    expect(await inForce()).toEqual([{ nanos: String(500n * CENT) }]);
    expect((await t.billing.updates(tenantId)).slice(told)).toMatchObject([
      { budgets: [{ version: '2', budgetNanos: String(700n * CENT) }] },
    ]);
    expect(await t.budgets.set(set)).toMatchObject({ budgetCents: 700 });
    expect(await inForce()).toEqual([{ nanos: String(700n * CENT) }]);
    expect((await t.billing.updates(tenantId)).slice(told)).toHaveLength(1);
  });

  it('a budget that is changed in the next month reaches no threshold of the month before', async () => {
    for (const before of [10_000, 'none'] as const) {
      t.reset();
      const tenantId = await t.billing.tenant();
      await t.set(tenantId, before);
      await t.spend(tenantId, 900);
      const late = t.charge(tenantId, 1);
      t.nowMs = Date.UTC(2026, 5, 1);
      await t.set(tenantId, 1_000);
      await t.gatherer.gather([late]);
      expect(await t.events(tenantId)).toEqual([]);
      await t.spend(tenantId, 500);
      expect((await t.events(tenantId)).map((event) => [event.period, event.thresholdPercent])).toEqual([
        ['2026-06', 50],
      ]);
    }
  });

  it('lists the keys with a budget of their own, in pages', async () => {
    const tenantId = await t.billing.tenant();
    const keys = Array.from({ length: 5 }, () => newId('key'));
    for (const keyId of keys) await t.set(tenantId, 100, keyId);
    await t.set(tenantId, 'default', keys[1]);
    await t.set(tenantId, 100);
    const first = await t.budgets.keys({ tenantId, limit: 2 });
    expect(first.data.map(({ keyId }) => keyId)).toEqual([keys[0], keys[2]]);
    const second = await t.budgets.keys({ tenantId, limit: 2, after: first.nextCursor! });
    expect(second.data.map(({ keyId }) => keyId)).toEqual([keys[3], keys[4]]);
    expect(second.nextCursor).toBeNull();
    await expect(t.budgets.keys({ tenantId, limit: 0 })).rejects.toMatchObject({ code: 'invalid_parameter' });
    await expect(t.budgets.keys({ tenantId, after: 'x' })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  it('answers the budgets of some keys at once, as it does one by one', async () => {
    const tenantId = await t.billing.tenant();
    const keys = Array.from({ length: 3 }, () => newId('key'));
    await t.set(tenantId, 100, keys[0]);
    await t.set(tenantId, 'none', keys[2]);
    const { data } = await t.budgets.of({ tenantId, keyIds: [keys[2]!, keys[0]!, keys[1]!, keys[0]!] });
    expect(data.map(({ budgetCents }) => budgetCents)).toEqual([100, 'default', 'none']);
    expect(data).toEqual(await Promise.all(keys.map((keyId) => t.budgets.get({ tenantId, keyId }))));
    expect(await t.budgets.of({ tenantId: await t.billing.tenant(), keyIds: [keys[0]!] })).toMatchObject({
      data: [{ keyId: keys[0], budgetCents: 'default', spentNanos: '0' }],
    });
    for (const keyIds of [['x'], Array.from({ length: 201 }, () => keys[0]!)])
      await expect(t.budgets.of({ tenantId, keyIds })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  it.each<[string, object, string]>([
    ['an unknown tenant', { tenantId: 'unknown' }, 'not_found'],
    ['an invalid tenant id', { tenantId: 'x' }, 'not_found'],
    ['an invalid key id', { keyId: 'x' }, 'not_found'],
    ['a negative amount', { budgetCents: -1 }, 'invalid_budget'],
    ['a fraction', { budgetCents: 1.5 }, 'invalid_budget'],
    ['an amount beyond 2^53', { budgetCents: 2 ** 53 }, 'invalid_budget'],
    ['an amount as text', { budgetCents: '5' }, 'invalid_budget'],
    ['an empty list of thresholds', { thresholdsPercent: [] }, 'invalid_thresholds'],
    ['thresholds out of order', { thresholdsPercent: [80, 50] }, 'invalid_thresholds'],
    ['a repeated threshold', { thresholdsPercent: [50, 50] }, 'invalid_thresholds'],
    ['a threshold of zero', { thresholdsPercent: [0] }, 'invalid_thresholds'],
    ['a threshold above 100 percent', { thresholdsPercent: [101] }, 'invalid_thresholds'],
  ])('refuses %s, and writes nothing', async (_, wrong, code) => {
    const tenantId = await t.billing.tenant();
    const unknown = await t.billing.tenant();
    t.billing.unknownTenants.add(unknown);
    const asked = { tenantId, keyId: null, budgetCents: 5, ...wrong };
    if (asked.tenantId === 'unknown') asked.tenantId = unknown;
    const before = await database.query('SELECT count(*) FROM billing.outbox');
    await expect(t.budgets.set(asked)).rejects.toMatchObject({ code });
    expect(await database.query('SELECT count(*) FROM billing.outbox')).toEqual(before);
    expect(await allBudgetUpdates(t.billing.dataSource.manager, asked.tenantId)).toEqual([]);
  });
});
