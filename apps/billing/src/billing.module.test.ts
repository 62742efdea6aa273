import { newId, type Charge } from '@tollgate/contracts';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { BillingProcess } from './testing/billing-process.fixture';
import { CENT, charge } from './testing/billing.fixture';

const database = useTestDatabase();

describe('billing, as the main program runs it', () => {
  const events: Charge[] = [];
  let first: BillingProcess;
  let second: BillingProcess;
  beforeAll(async () => {
    first = await new BillingProcess(database.url, events).start();
    second = await new BillingProcess(database.url, events).start();
  });
  afterAll(() => Promise.all([first.stop(), second.stop()]));

  const topUp = (tenantId: string, amountCents: number) =>
    first.messages.request('billing.credit.add', { tenantId, amountCents, source: 'manual', ref: 'start' });
  const snapshot = async (tenantId: string) => (await first.admission.snapshot({ tenantId, limit: 1 }))[0];
  const charges = async (batch: Charge[]) => {
    events.push(...batch);
    await first.messages.publish('charges', batch);
  };

  it('money is in force at the admission store when its booking is answered, and so is a repeat', async () => {
    let tenantId = '';
    for (let round = 0; round < 20; round++) {
      tenantId = newId('ten');
      expect(await topUp(tenantId, 1_000)).toMatchObject({ entry: { type: 'topup', amountCents: 1_000 } });
      expect(await snapshot(tenantId)).toMatchObject({ version: 1n, balanceNanos: 1_000n * CENT });
    }
    const balance = async () => (await snapshot(tenantId))?.balanceNanos;
    const book = async (how: 'adjust' | 'refund', amountCents: number, afterCents: bigint, more = {}) => {
      const request = { tenantId, source: 'manual', reason: 'test', ref: String(afterCents), amountCents, ...more };
      await first.messages.request(`billing.credit.${how}`, request);
      expect(await balance()).toBe(afterCents * CENT);
    };
    await book('adjust', 500, 1_500n);
    await book('adjust', -200, 1_300n);
    await book('refund', 300, 1_000n);
    await book('adjust', -1_200, -200n, { allowDebt: true });
    await book('adjust', 1_200, 1_000n, { ref: 'up again' });
    // The answer was lost before the store knew of the entry. A repeat gets the first answer, and the store learns of
    // the entry.
    await database.query(`UPDATE admission.tenant SET version = 1, balance_nanos = 0 WHERE tenant_id = $1`, [tenantId]);
    expect(await topUp(tenantId, 1_000)).toMatchObject({ balanceCents: 1_000 });
    expect(await balance()).toBe(1_000n * CENT);
    const spendable = { spendableNanos: String(1_000n * CENT) };
    expect(await second.messages.request('billing.credit.spendable', { tenantId })).toEqual(spendable);
    const unknown = { tenantId: newId('ten') };
    expect(await first.messages.request('billing.credit.spendable', unknown)).toEqual({ spendableNanos: null });
  });

  it('two processes bring each published charge into the ledger and the store exactly once', async () => {
    const tenants = Array.from({ length: 10 }, () => newId('ten'));
    for (const tenantId of tenants) await topUp(tenantId, 10_000);
    const all = tenants.flatMap((tenantId) =>
      Array.from({ length: 40 }, (_, i) => charge(tenantId, BigInt(i) * 1_234_567n)),
    );
    for (let i = 0; i < all.length; i += 80) {
      await charges(all.slice(i, i + 80));
      await second.messages.publish('charges', all.slice(i, i + 40));
    }
    const costNanos = 780n * 1_234_567n;
    for (const tenantId of tenants) {
      await eventually(async () => {
        const summary = await second.messages.request('billing.summary', { tenantId });
        expect(BigInt(10_000 - summary.balanceCents) * CENT + BigInt(summary.carriedNanos)).toBe(costNanos);
        expect(BigInt(summary.carriedNanos) < CENT).toBe(true);
        expect(await snapshot(tenantId)).toMatchObject({ balanceNanos: 10_000n * CENT - costNanos });
      });
    }
    const report = await first.reconcile();
    expect(report).toMatchObject({
      ok: true,
      differences: [],
      events: events.length,
      eventsNanos: report.chargesNanos,
    });
    expect(BigInt(report.debitsNanos) + BigInt(report.carriedNanos)).toBe(BigInt(report.chargesNanos));
  });

  it('reconciles while charges keep arriving, and reports none of those on their way', async () => {
    const tenantId = newId('ten');
    await topUp(tenantId, 100_000);
    let [going, rounds, before] = [true, 0, 0];
    const traffic = (async () => {
      for (; going; rounds++) {
        const [one, other] = [charge(tenantId, 777n), charge(tenantId, CENT / 3n)];
        await charges([one, other]);
        // Never more on its way than can be gathered while reconcile reads the books.
        await eventually(async () =>
          expect(await database.query('SELECT FROM billing.charge WHERE id = $1', [other.id])).toHaveLength(1),
        );
      }
    })();
    try {
      do {
        before = rounds;
        // There are no holds to account for charges on their way. Each must be gathered in the end.
        expect((await second.reconcile()).differences).toEqual([]);
      } while (rounds === before);
    } finally {
      going = false;
      await traffic;
    }
    expect((await second.reconcile()).differences).toEqual([]);
  });

  it('returns the newest balance update of a tenant without releases, or null if it has no books', async () => {
    const tenantId = newId('ten');
    const ask = () => second.messages.request('billing.credit.news', { tenantId });
    expect(await ask()).toBeNull();
    await topUp(tenantId, 100);
    expect(await ask()).toEqual({
      tenantId,
      version: '1',
      balanceNanos: String(100n * CENT),
      releases: [],
      suspended: false,
    });
    const gathered = charge(tenantId, 5n);
    events.push(gathered);
    await first.messages.publish('charges', [gathered]);
    await eventually(async () => expect(await ask()).toMatchObject({ balanceNanos: String(100n * CENT - 5n) }));
    // The same state as in a store that was never emptied.
    await eventually(async () =>
      expect(await snapshot(tenantId)).toMatchObject({
        version: BigInt((await ask())!.version),
        balanceNanos: BigInt((await ask())!.balanceNanos),
      }),
    );
  });

  it('a budget is in force for the next admission, and is returned on request', async () => {
    const tenantId = newId('ten');
    await topUp(tenantId, 100);
    await second.messages.request('billing.budget.set', { tenantId, keyId: null, budgetCents: 7 });
    const budgets = [{ keyId: null, version: '1', budgetNanos: String(7n * CENT) }];
    expect(await second.messages.request('billing.credit.news', { tenantId })).toMatchObject({ budgets });
    const state = { budgetCents: 7, spentNanos: '0', events: [] };
    expect(await second.messages.request('billing.budget.get', { tenantId, keyId: null })).toMatchObject(state);
    expect(await second.messages.request('billing.budget.keys', { tenantId })).toEqual({ data: [], nextCursor: null });
    await eventually(async () => {
      const rows = await database.query<{ nanos: string }>(
        'SELECT budget_nanos AS nanos FROM admission.tenant WHERE tenant_id = $1',
        [tenantId],
      );
      expect(rows).toEqual([{ nanos: String(7n * CENT) }]);
    });
  });

  it('names a lost charge, and a store that was tampered with', async () => {
    const lost = charge(newId('ten'), 5n);
    events.push(lost);
    const tampered = newId('ten');
    await topUp(tampered, 100);
    await eventually(async () => expect(await snapshot(tampered)).toMatchObject({ version: 1n }));
    await database.query(`UPDATE admission.tenant SET balance_nanos = balance_nanos + 1 WHERE tenant_id = $1`, [
      tampered,
    ]);
    const report = await first.reconcile();
    expect(report.ok).toBe(false);
    expect(report.differences.sort((a, b) => (a.check < b.check ? -1 : 1))).toEqual([
      {
        check: 'balance = balance of the admission store',
        tenantId: tampered,
        expected: String(100n * CENT),
        actual: String(100n * CENT + 1n),
        ids: [],
      },
      {
        check: 'every event is charged',
        tenantId: lost.tenantId,
        expected: '5 nanos charged',
        actual: 'no charge',
        ids: [lost.id],
      },
    ]);
    await database.query(`UPDATE admission.tenant SET balance_nanos = balance_nanos - 1 WHERE tenant_id = $1`, [
      tampered,
    ]);
    events.splice(events.indexOf(lost), 1);
  });
});

describe('billing that stops', () => {
  it('first posts every whole cent that has gathered, due or not, and publishes the balance update', async () => {
    const process = await new BillingProcess(database.url, [], 60_000).start();
    const tenantId = newId('ten');
    await process.messages.request('billing.credit.add', {
      tenantId,
      amountCents: 100,
      source: 'manual',
      ref: 'start',
    });
    const balance = () =>
      database.query(
        'SELECT balance_cents::int AS cents, gathered_nanos::text AS nanos FROM billing.tenant_books WHERE ' +
          'tenant_id = $1',
        [tenantId],
      );
    await process.messages.publish('charges', [charge(tenantId, CENT)]);
    await eventually(async () => expect(await balance()).toEqual([{ cents: 99, nanos: '0' }]));
    await process.messages.publish('charges', [charge(tenantId, 2n * CENT)]);
    await eventually(async () => expect(await balance()).toEqual([{ cents: 99, nanos: String(2n * CENT) }]));
    await process.stop();
    expect(await balance()).toEqual([{ cents: 97, nanos: '0' }]);
    expect(await database.query(`SELECT FROM billing.outbox WHERE data->>'tenantId' = $1`, [tenantId])).toEqual([]);
  });
});
