import { newId } from '@tollgate/contracts';
import type { TestDatabase } from '@tollgate/testing';
import { MoneyOut } from '../refunds/money-out';
import { CENT, charge } from '../testing/billing.fixture';
import { settleRequest } from '../testing/held-request.fixture';
import { Stores } from '../reconcile/stores';
import { PoisonWatch } from './poison-watch';
import { FORGED, useRepairs, WATCHING, type OpenStore } from './repairs.fixture';

/** Repairs and the watch while money moves and requests run, in either admission store beside real books. */
export function repairsInMotionSuite(database: TestDatabase, openStore: OpenStore): void {
  describe('repairs and the watch in motion', () => {
    const t = useRepairs(database, openStore);

    it('raises no alarm over updates on their way, refunds and requests while it looks repeatedly', async () => {
      const before = await t.alarms();
      const moneyOut = new MoneyOut(t.billing.dataSource, t.billing.messages, t.store, {
        postingIntervalMs: 0,
        now: () => new Date(),
        currency: () => 'USD',
      });
      const tenants = [await t.tenant(), await t.tenant(), await t.tenant()];
      let busy = true;
      const work = async (tenantId: string) => {
        for (let i = 0; i < 12; i++) {
          await t.topUp(tenantId, 50);
          const id = await t.settle(tenantId, CENT + 1n);
          const refund = { tenantId, amountCents: 20 + (i % 3) * 5_000, source: 'manual', ref: newId('msg') };
          await moneyOut.refund(refund).catch(() => undefined);
          await t.billing.gatherer.gather([charge(tenantId, CENT + 1n, { id })]);
          await t.billing.poster.postDue();
          if (i % 2) await t.deliver(tenantId);
        }
        await t.deliver(tenantId);
      };
      const looking = async () => {
        while (busy) for (const tenantId of tenants) expect(await t.repairs.heal(tenantId)).toBeNull();
      };
      const rounds = async () => {
        while (busy) await t.watch.round();
      };
      const looks = Promise.all([looking(), rounds()]);
      try {
        await Promise.all(tenants.map(work));
      } finally {
        busy = false;
        await looks;
      }
      expect(await t.alarms()).toBe(before);
    });

    it('leaves a withdrawal to the refund that will give it up, and raises no alarm over it', async () => {
      const tenantId = await t.tenant();
      await database.query('INSERT INTO billing.withdrawal_intent (id, tenant_id) VALUES ($1, $2)', [
        newId('msg'),
        tenantId,
      ]);
      await t.store.withdraw({ tenantId, version: 2n, nanos: 400n * CENT });
      expect(await t.repairs.heal(tenantId)).toBeNull();
      expect(await t.view(tenantId)).toMatchObject({ balanceNanos: 600n * CENT, withdrawnNanos: 400n * CENT });
      // A person can still repair: the refund is not booked, and cannot be while the books are locked.
      await t.repairs.repair({ tenantId });
      await t.expectSound(tenantId, 1_000n);
    });

    it('is exact while money moves and requests run: it loses no update and makes no credit', async () => {
      const tenantId = await t.tenant();
      let busy = true;
      const repairing = (async () => {
        for (let i = 0n; busy; i++) {
          if (i % 3n === 0n) await t.forge(tenantId, FORGED + i, 1_000_000n * CENT);
          await t.repairs.repair({ tenantId });
        }
      })();
      let used = 0n;
      try {
        for (let i = 0; i < 15; i++) {
          await t.topUp(tenantId, 10);
          await t.deliver(tenantId);
          const draft = await t.admit(tenantId, CENT);
          if (!draft) continue;
          used += CENT;
          expect(await settleRequest(t.store, draft, CENT)).toMatchObject([{ kind: 'settled' }]);
          await t.billing.gatherer.gather([charge(tenantId, CENT, { id: draft.id })]);
        }
      } finally {
        busy = false;
        await repairing;
      }
      await t.deliver(tenantId);
      await t.watch.round();
      expect(await t.view(tenantId)).toMatchObject({
        settledNanos: 0n,
        pendingNanos: 0n,
        balanceNanos: 1_150n * CENT - used,
      });
      await t.expectSound(tenantId, 1_150n - used / CENT);
    });

    it('an update that does not arrive within a minute is sent again, and not earlier', async () => {
      const patient = new PoisonWatch(new Stores(t.billing.dataSource, t.store), t.repairs, WATCHING);
      const hasty = new PoisonWatch(new Stores(t.billing.dataSource, t.store), t.repairs, {
        ...WATCHING,
        lostAfterMs: 0,
      });
      const tenantId = await t.tenant();
      await t.topUp(tenantId, 500);
      for (const one of [patient, patient, hasty]) await one.round();
      expect(await t.view(tenantId)).toMatchObject({ version: 1n });
      await hasty.round();
      expect(await t.view(tenantId)).toMatchObject({ version: 2n, balanceNanos: 1_500n * CENT });
    });

    it('a tenant that has just changed is checked at once', async () => {
      const tenantId = await t.tenant();
      await t.forge(tenantId, FORGED, 0n);
      await t.topUp(tenantId, 500);
      const asked = new PoisonWatch(new Stores(t.billing.dataSource, t.store), t.repairs, WATCHING);
      asked.look(tenantId);
      await asked.settled();
      await t.expectSound(tenantId, 1_500n);
    });
  });
}
