import { parseBalanceUpdate, type AdmissionStore, type Snapshot } from '@tollgate/admission';
import { newId, UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { useTestDatabase, type TestDatabase } from '@tollgate/testing';
import { MoneyOut } from '../refunds/money-out';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { PoisonWatch } from './poison-watch';
import { TenantRepairs } from './tenant-repairs';

const WIDE = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000_000 };
const PRICE = { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0', requestNanos: '0' };
const FORGED = 999_999_999n;

/** What the tests write into a store behind its back. Anyone with its credential can do the same. */
export interface Spoil {
  /** Sets a field of the tenant's row: `version`, `balance`, `settled`, `suspended` (true), `in_flight`. */
  set(
    tenantId: string,
    field: 'version' | 'balance' | 'settled' | 'suspended' | 'in_flight',
    value: string,
  ): Promise<unknown>;
  /** Absent where columns have types. */
  garbage?(tenantId: string): Promise<unknown>;
}

/** Forged and broken states of a tenant, in either admission store beside real books. */
export function tenantRepairsSuite(
  openStore: (database: TestDatabase) => { store: AdmissionStore; spoil: Spoil },
): void {
  const database = useTestDatabase();
  describe('the repair of a tenant', () => {
    const billing = useBilling(database);
    const now = () => new Date();
    let store: AdmissionStore;
    let spoil: Spoil;
    let repairs: TenantRepairs;
    let watch: PoisonWatch;
    beforeAll(async () => {
      ({ store, spoil } = openStore(database));
      await store.start();
      repairs = new TenantRepairs(billing.dataSource, billing.messages, store, { now });
      watch = new PoisonWatch(billing.dataSource, store, repairs);
    });
    afterAll(() => store.close());

    const deliver = async (tenantId: string) =>
      store.applyBalanceUpdates((await billing.news(tenantId)).map(parseBalanceUpdate));
    const view = async (tenantId: string): Promise<Snapshot> => (await store.snapshot({ tenantId, limit: 1 }))[0]!;
    const forge = (tenantId: string, version: bigint, balanceNanos: bigint, suspended = false) =>
      store.applyBalanceUpdates([{ tenantId, version, balanceNanos, suspended, releases: [] }]);
    const topUp = (tenantId: string, amountCents: number) =>
      billing.topUps.add({ tenantId, amountCents, source: 'manual', ref: newId('msg') });
    /** Makes a tenant with 10.00 that the store knows. */
    const tenant = async () => {
      const tenantId = await billing.tenant(1_000);
      await deliver(tenantId);
      return tenantId;
    };
    const admit = async (tenantId: string, nanos: bigint) => {
      const id = newId('req');
      const draft = { id, tenantId, keyId: 'key_test', model: 'm', kind: 'chat' as const, stream: false, price: PRICE };
      const [result] = await store.admit([
        {
          draft: { ...draft, startedAt: new Date().toISOString() },
          tenantLimits: WIDE,
          keyLimits: WIDE,
          keyBudgetNanos: null,
          tenantBudgetNanos: null,
          promptTokens: 0,
          promptFemtos: nanos * 1_000_000n,
          outputFemtosPerToken: 0n,
          wantOutputTokens: 0,
          minOutputTokens: 0,
          boundIsExact: true,
        },
      ]);
      if (result instanceof Error) throw result;
      return { id, kind: result!.kind, draft: { ...draft, startedAt: new Date().toISOString() } };
    };
    const settle = async (tenantId: string, nanos: bigint) => {
      const { id, kind, draft } = await admit(tenantId, nanos);
      expect(kind).toBe('held');
      const event: UsageEvent = {
        ...draft,
        promptTokens: 0,
        cachedTokens: 0,
        completionTokens: 1,
        costNanos: String(nanos),
        overrunNanos: '0',
        estimated: false,
        outcome: 'complete',
        endedAt: new Date().toISOString(),
      };
      await store.settle([{ event }]);
      return id;
    };
    const alarms = async () => {
      const { values } = await metrics.getSingleMetric('tollgate_billing_poisoned_tenants_total')!.get();
      return values.reduce((sum, { value }) => sum + value, 0);
    };
    /** The tenant is sound in the watch's own judgement, and can spend exactly the balance of the books. */
    const expectSound = async (tenantId: string, cents: bigint) => {
      expect(await repairs.repair({ tenantId, dryRun: true })).toMatchObject({ changes: [], repaired: false });
      expect((await admit(tenantId, cents * CENT + 1n)).kind).toBe('refused');
      const all = await admit(tenantId, cents * CENT);
      expect(all.kind).toBe('held');
      await store.void([{ id: all.id, tenantId }]);
    };

    describe.each([
      ['a person', (tenantId: string) => repairs.repair({ tenantId })],
      ['the watch', () => watch.round()],
    ])('by %s', (who, repair) => {
      it('a forged version with a balance is repaired, and a genuine top-up works again', async () => {
        const tenantId = await tenant();
        await forge(tenantId, FORGED, 1_500n * 100n * CENT);
        expect((await admit(tenantId, 150_000n * CENT)).kind).toBe('held');
        await topUp(tenantId, 500);
        await deliver(tenantId);
        expect(await view(tenantId)).toMatchObject({ version: FORGED });
        await repair(tenantId);
        const { version, balanceNanos, pendingHolds } = await view(tenantId);
        expect([version, balanceNanos, pendingHolds]).toEqual([2n, 1_500n * CENT, 1]);
        expect((await admit(tenantId, 1n)).kind).toBe('refused');
        await topUp(tenantId, 150_000);
        await deliver(tenantId);
        expect((await admit(tenantId, 1_500n * CENT)).kind).toBe('held');
      });

      it('a suspension that the books do not have is lifted, at a forged version or at the right one', async () => {
        const [byVersion, byField] = [await tenant(), await tenant()];
        await forge(byVersion, FORGED, 1_000n * CENT, true);
        await spoil.set(byField, 'suspended', 'true');
        for (const tenantId of [byVersion, byField]) expect((await admit(tenantId, 1n)).kind).toBe('refused');
        for (const tenantId of [byVersion, byField]) {
          await repair(tenantId);
          await expectSound(tenantId, 1_000n);
        }
      });

      it('another balance with the right version is repaired', async () => {
        const tenantId = await tenant();
        for (const balance of [999_999n * CENT, -5n]) {
          await spoil.set(tenantId, 'balance', String(balance));
          await repair(tenantId);
          await expectSound(tenantId, 1_000n);
        }
      });

      it('a balance that the books never had is repaired, even with a version that could be on its way', async () => {
        const tenantId = await tenant();
        await topUp(tenantId, 500);
        await deliver(tenantId);
        const before = await alarms();
        for (const version of ['1', '0']) {
          await spoil.set(tenantId, 'version', version);
          await spoil.set(tenantId, 'balance', String(999_999n * CENT));
          await repair(tenantId);
          await expectSound(tenantId, 1_500n);
        }
        expect((await alarms()) - before).toBe(who === 'the watch' ? 2 : 0);
      });

      it('running sums that are not those of the holds are repaired', async () => {
        const tenantId = await tenant();
        const settled = await settle(tenantId, 100n * CENT);
        await spoil.set(tenantId, 'settled', '0');
        await repair(tenantId);
        await expectSound(tenantId, 900n);
        await spoil.set(tenantId, 'in_flight', '1000000');
        await repair(tenantId);
        await expectSound(tenantId, 900n);
        await billing.gatherer.gather([charge(tenantId, 100n * CENT, { id: settled })]);
        await deliver(tenantId);
        await expectSound(tenantId, 900n);
      });

      it('a withdrawal that no refund made is removed', async () => {
        const tenantId = await tenant();
        await store.withdraw({ tenantId, version: FORGED, nanos: 1_000n * CENT });
        expect((await admit(tenantId, 1n)).kind).toBe('refused');
        await repair(tenantId);
        await expectSound(tenantId, 1_000n);
      });

      it('garbage is replaced', async () => {
        if (!spoil.garbage) return;
        const tenantId = await tenant();
        await spoil.garbage(tenantId);
        expect(await view(tenantId)).toMatchObject({ unreadable: expect.any(String) });
        await repair(tenantId);
        await expectSound(tenantId, 1_000n);
      });

      it('credit of a tenant without books is removed', async () => {
        const tenantId = newId('ten');
        await forge(tenantId, 5n, 1_000n * CENT);
        await repair(tenantId);
        expect((await admit(tenantId, 1n)).kind).toBe('refused');
        await topUp(tenantId, 1_000);
        await deliver(tenantId);
        await expectSound(tenantId, 1_000n);
      });
    });

    it('an older version may have what the books had then or since, and not a nano more', async () => {
      const tenantId = await tenant();
      await topUp(tenantId, 500);
      await billing.gatherer.gather([charge(tenantId, 300n * CENT)]);
      await billing.poster.postDue();
      for (const version of ['0', '1', '2', '3']) {
        await spoil.set(tenantId, 'version', version);
        await spoil.set(tenantId, 'balance', String(1_500n * CENT));
        expect(await repairs.heal(tenantId)).toBeNull();
      }
      await spoil.set(tenantId, 'balance', String(1_500n * CENT + 1n));
      expect(await repairs.heal(tenantId)).toMatchObject({ poison: 'balance' });
      await expectSound(tenantId, 1_200n);
    });

    it('a dry run says what it would change, and changes nothing', async () => {
      const tenantId = await tenant();
      await forge(tenantId, FORGED, 7n, true);
      const changes = [
        { what: 'version', from: '999999999', to: '1' },
        { what: 'balanceNanos', from: '7', to: String(1_000n * CENT) },
        { what: 'suspended', from: 'true', to: 'false' },
      ];
      expect(await repairs.repair({ tenantId, dryRun: true })).toEqual({
        tenantId,
        changes,
        droppedHolds: 0,
        repaired: false,
      });
      expect(await view(tenantId)).toMatchObject({ version: FORGED });
      expect(await repairs.repair({ tenantId })).toEqual({ tenantId, changes, droppedHolds: 0, repaired: true });
      await expectSound(tenantId, 1_000n);
    });

    it('releases the holds of gathered charges, so that nothing counts twice, and keeps the others', async () => {
      const tenantId = await tenant();
      const [gathered] = [await settle(tenantId, 300n * CENT), await settle(tenantId, 200n * CENT)];
      await billing.gatherer.gather([charge(tenantId, 300n * CENT, { id: gathered })]);
      await forge(tenantId, FORGED, 0n);
      await repairs.repair({ tenantId });
      expect(await view(tenantId)).toMatchObject({ balanceNanos: 700n * CENT, settledNanos: 200n * CENT });
      await deliver(tenantId);
      await expectSound(tenantId, 500n);
    });

    it("gets the month's spending from metering, and does not wait for it", async () => {
      const tenantId = await tenant();
      await forge(tenantId, FORGED, 0n);
      const answered = billing.spent;
      billing.spent = () => Promise.reject(new UnavailableError('away'));
      try {
        await repairs.repair({ tenantId });
      } finally {
        billing.spent = answered;
      }
      await expectSound(tenantId, 1_000n);
    });

    it('raises no alarm over updates on their way, refunds and requests while it looks repeatedly', async () => {
      const before = await alarms();
      const moneyOut = new MoneyOut(billing.dataSource, billing.messages, store, {
        postingIntervalMs: 0,
        now,
        currency: () => 'USD',
      });
      const tenants = [await tenant(), await tenant(), await tenant()];
      let busy = true;
      const work = async (tenantId: string) => {
        for (let i = 0; i < 12; i++) {
          await topUp(tenantId, 50);
          const id = await settle(tenantId, CENT + 1n);
          const refund = { tenantId, amountCents: 20 + (i % 3) * 5_000, source: 'manual', ref: newId('msg') };
          await moneyOut.refund(refund).catch(() => undefined);
          await billing.gatherer.gather([charge(tenantId, CENT + 1n, { id })]);
          await billing.poster.postDue();
          if (i % 2) await deliver(tenantId);
        }
        await deliver(tenantId);
      };
      const looking = async () => {
        while (busy) for (const tenantId of tenants) expect(await repairs.heal(tenantId)).toBeNull();
      };
      const rounds = async () => {
        while (busy) await watch.round();
      };
      const looks = Promise.all([looking(), rounds()]);
      try {
        await Promise.all(tenants.map(work));
      } finally {
        busy = false;
        await looks;
      }
      expect(await alarms()).toBe(before);
    });

    it('leaves a withdrawal to the refund that will give it up, and raises no alarm over it', async () => {
      const tenantId = await tenant();
      await database.query(`INSERT INTO billing.withdrawal_intent (id, tenant_id) VALUES ($1, $2)`, [
        newId('msg'),
        tenantId,
      ]);
      await store.withdraw({ tenantId, version: 2n, nanos: 400n * CENT });
      expect(await repairs.heal(tenantId)).toBeNull();
      expect(await view(tenantId)).toMatchObject({ balanceNanos: 600n * CENT, withdrawnNanos: 400n * CENT });
      // A person can still repair: the refund is not booked, and cannot be while the books are locked.
      await repairs.repair({ tenantId });
      await expectSound(tenantId, 1_000n);
    });

    it('is exact while money moves and requests run: it loses no update and makes no credit', async () => {
      const tenantId = await tenant();
      let busy = true;
      const repairing = (async () => {
        for (let i = 0n; busy; i++) {
          if (i % 3n === 0n) await forge(tenantId, FORGED + i, 1_000_000n * CENT);
          await repairs.repair({ tenantId });
        }
      })();
      let used = 0n;
      try {
        for (let i = 0; i < 15; i++) {
          await topUp(tenantId, 10);
          await deliver(tenantId);
          const { id, kind, draft } = await admit(tenantId, CENT);
          if (kind !== 'held') continue;
          used += CENT;
          const tokens = { promptTokens: 0, cachedTokens: 0, completionTokens: 1, overrunNanos: '0', estimated: false };
          const ended = { outcome: 'complete' as const, endedAt: new Date().toISOString() };
          expect(
            await store.settle([{ event: { ...draft, ...tokens, ...ended, costNanos: String(CENT) } }]),
          ).toMatchObject([{ kind: 'settled' }]);
          await billing.gatherer.gather([charge(tenantId, CENT, { id })]);
        }
      } finally {
        busy = false;
        await repairing;
      }
      await deliver(tenantId);
      await watch.round();
      expect(await view(tenantId)).toMatchObject({
        settledNanos: 0n,
        pendingNanos: 0n,
        balanceNanos: 1_150n * CENT - used,
      });
      await expectSound(tenantId, 1_150n - used / CENT);
    });

    it('an update that does not arrive within a minute is sent again, and not earlier', async () => {
      const patient = new PoisonWatch(billing.dataSource, store, repairs);
      const hasty = new PoisonWatch(billing.dataSource, store, repairs, 0);
      const tenantId = await tenant();
      await topUp(tenantId, 500);
      for (const one of [patient, patient, hasty]) await one.round();
      expect(await view(tenantId)).toMatchObject({ version: 1n });
      await hasty.round();
      expect(await view(tenantId)).toMatchObject({ version: 2n, balanceNanos: 1_500n * CENT });
    });

    it('a tenant that has just changed is checked at once', async () => {
      const tenantId = await tenant();
      await forge(tenantId, FORGED, 0n);
      await topUp(tenantId, 500);
      const asked = new PoisonWatch(billing.dataSource, store, repairs);
      asked.look(tenantId);
      await asked.settled();
      await expectSound(tenantId, 1_500n);
    });
  });
}
