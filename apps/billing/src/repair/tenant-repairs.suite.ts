import { newId, UnavailableError } from '@tollgate/contracts';
import type { TestDatabase } from '@tollgate/testing';
import { CENT, charge } from '../testing/billing.fixture';
import { FORGED, useRepairs, type OpenStore } from './repairs.fixture';

/** Forged and broken states of a tenant, in either admission store beside real books. */
export function tenantRepairsSuite(database: TestDatabase, openStore: OpenStore): void {
  describe('the repair of a tenant', () => {
    const t = useRepairs(database, openStore);

    describe.each([
      ['a person', (tenantId: string) => t.repairs.repair({ tenantId })],
      ['the watch', () => t.watch.round()],
    ])('by %s', (who, repair) => {
      it('a forged version with a balance is repaired, and a genuine top-up works again', async () => {
        const tenantId = await t.tenant();
        await t.forge(tenantId, FORGED, 1_500n * 100n * CENT);
        expect(await t.admit(tenantId, 150_000n * CENT)).not.toBeNull();
        await t.topUp(tenantId, 500);
        await t.deliver(tenantId);
        expect(await t.view(tenantId)).toMatchObject({ version: FORGED });
        await repair(tenantId);
        const { version, balanceNanos, pendingHolds } = await t.view(tenantId);
        expect([version, balanceNanos, pendingHolds]).toEqual([2n, 1_500n * CENT, 1]);
        expect(await t.admit(tenantId, 1n)).toBeNull();
        await t.topUp(tenantId, 150_000);
        await t.deliver(tenantId);
        expect(await t.admit(tenantId, 1_500n * CENT)).not.toBeNull();
      });

      it('a suspension that the books do not have is lifted, at a forged version or at the right one', async () => {
        const [byVersion, byField] = [await t.tenant(), await t.tenant()];
        await t.forge(byVersion, FORGED, 1_000n * CENT, true);
        await t.spoil.set(byField, 'suspended', 'true');
        for (const tenantId of [byVersion, byField]) expect(await t.admit(tenantId, 1n)).toBeNull();
        for (const tenantId of [byVersion, byField]) {
          await repair(tenantId);
          await t.expectSound(tenantId, 1_000n);
        }
      });

      it('another balance with the right version is repaired', async () => {
        const tenantId = await t.tenant();
        for (const balance of [999_999n * CENT, -5n]) {
          await t.spoil.set(tenantId, 'balance', String(balance));
          await repair(tenantId);
          await t.expectSound(tenantId, 1_000n);
        }
      });

      it('a balance that the books never had is repaired, even with a version that could be on its way', async () => {
        const tenantId = await t.tenant();
        await t.topUp(tenantId, 500);
        await t.deliver(tenantId);
        const before = await t.alarms();
        for (const version of ['1', '0']) {
          await t.spoil.set(tenantId, 'version', version);
          await t.spoil.set(tenantId, 'balance', String(999_999n * CENT));
          await repair(tenantId);
          await t.expectSound(tenantId, 1_500n);
        }
        expect((await t.alarms()) - before).toBe(who === 'the watch' ? 2 : 0);
      });

      it('running sums that are not those of the holds are repaired', async () => {
        const tenantId = await t.tenant();
        const settled = await t.settle(tenantId, 100n * CENT);
        await t.spoil.set(tenantId, 'settled', '0');
        await repair(tenantId);
        await t.expectSound(tenantId, 900n);
        await t.spoil.set(tenantId, 'in_flight', '1000000');
        await repair(tenantId);
        await t.expectSound(tenantId, 900n);
        await t.billing.gatherer.gather([charge(tenantId, 100n * CENT, { id: settled })]);
        await t.deliver(tenantId);
        await t.expectSound(tenantId, 900n);
      });

      it('a withdrawal that no refund made is removed', async () => {
        const tenantId = await t.tenant();
        await t.store.withdraw({ tenantId, version: FORGED, nanos: 1_000n * CENT });
        expect(await t.admit(tenantId, 1n)).toBeNull();
        await repair(tenantId);
        await t.expectSound(tenantId, 1_000n);
      });

      it('garbage is replaced', async () => {
        if (!t.spoil.garbage) return;
        const tenantId = await t.tenant();
        await t.spoil.garbage(tenantId);
        expect(await t.view(tenantId)).toMatchObject({ unreadable: expect.any(String) });
        await repair(tenantId);
        await t.expectSound(tenantId, 1_000n);
      });

      it('credit of a tenant without books is removed', async () => {
        const tenantId = newId('ten');
        await t.forge(tenantId, 5n, 1_000n * CENT);
        await repair(tenantId);
        expect(await t.admit(tenantId, 1n)).toBeNull();
        await t.topUp(tenantId, 1_000);
        await t.deliver(tenantId);
        await t.expectSound(tenantId, 1_000n);
      });
    });

    it('an older version may have what the books had then or since, and not a nano more', async () => {
      const tenantId = await t.tenant();
      await t.topUp(tenantId, 500);
      await t.billing.gatherer.gather([charge(tenantId, 300n * CENT)]);
      await t.billing.poster.postDue();
      for (const version of ['0', '1', '2', '3']) {
        await t.spoil.set(tenantId, 'version', version);
        await t.spoil.set(tenantId, 'balance', String(1_500n * CENT));
        expect(await t.repairs.heal(tenantId)).toBeNull();
      }
      await t.spoil.set(tenantId, 'balance', String(1_500n * CENT + 1n));
      expect(await t.repairs.heal(tenantId)).toMatchObject({ poison: 'balance' });
      await t.expectSound(tenantId, 1_200n);
    });

    it('a dry run says what it would change, and changes nothing', async () => {
      const tenantId = await t.tenant();
      await t.forge(tenantId, FORGED, 7n, true);
      const changes = [
        { what: 'version', from: '999999999', to: '1' },
        { what: 'balanceNanos', from: '7', to: String(1_000n * CENT) },
        { what: 'suspended', from: 'true', to: 'false' },
      ];
      expect(await t.repairs.repair({ tenantId, dryRun: true })).toEqual({
        tenantId,
        changes,
        droppedHolds: 0,
        repaired: false,
      });
      expect(await t.view(tenantId)).toMatchObject({ version: FORGED });
      expect(await t.repairs.repair({ tenantId })).toEqual({ tenantId, changes, droppedHolds: 0, repaired: true });
      await t.expectSound(tenantId, 1_000n);
    });

    it('releases the holds of gathered charges, so that nothing counts twice, and keeps the others', async () => {
      const tenantId = await t.tenant();
      const [gathered] = [await t.settle(tenantId, 300n * CENT), await t.settle(tenantId, 200n * CENT)];
      await t.billing.gatherer.gather([charge(tenantId, 300n * CENT, { id: gathered })]);
      await t.forge(tenantId, FORGED, 0n);
      await t.repairs.repair({ tenantId });
      expect(await t.view(tenantId)).toMatchObject({ balanceNanos: 700n * CENT, settledNanos: 200n * CENT });
      await t.deliver(tenantId);
      await t.expectSound(tenantId, 500n);
    });

    it("gets the month's spending from metering, and does not wait for it", async () => {
      const tenantId = await t.tenant();
      await t.forge(tenantId, FORGED, 0n);
      const answered = t.billing.spent;
      t.billing.spent = () => Promise.reject(new UnavailableError('away'));
      try {
        await t.repairs.repair({ tenantId });
      } finally {
        t.billing.spent = answered;
      }
      await t.expectSound(tenantId, 1_000n);
    });
  });
}
