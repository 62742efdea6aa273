import type { AdmissionStore } from '@tollgate/admission';
import { MAX_ENTRY_CENTS, newId } from '@tollgate/contracts';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { openRejected } from '../gather/rejected';
import { CENT, charge, expectBooksToProve } from '../testing/billing.fixture';
import { holdRequest, settleRequest, type Draft } from '../testing/held-request.fixture';
import { withdrawing } from '../testing/withdrawing.fixture';
import { useMoneyOut } from './money-out.fixture';

/** The guarantees of money out beside a real admission store. Both implementations must pass them. */
export function moneyOutSuite(openStore: (databaseUrl: string) => AdmissionStore): void {
  const database = useTestDatabase();
  describe('money out', () => {
    const trial = useMoneyOut(database, openStore, () => new Date('2031-10-31T23:59:59.999Z'));
    const { billing, deliver, sums } = trial;

    const refund = (tenantId: string, amountCents: number | 'all', ref: string = newId('msg'), out = trial.moneyOut) =>
      out.refund({ tenantId, amountCents, source: 'stripe', ref }).then(({ reply }) => reply);
    const adjust = (tenantId: string, amountCents: number | 'all', more: { ref?: string; allowDebt?: boolean } = {}) =>
      trial.moneyOut
        .adjust({ tenantId, amountCents, source: 'manual', ref: newId('msg'), reason: 'goodwill', ...more })
        .then(({ reply }) => reply);
    const available = async (tenantId: string) => {
      const { balanceNanos, settledNanos, pendingNanos } = await sums(tenantId);
      return balanceNanos - settledNanos - pendingNanos;
    };
    const admit = (tenantId: string, nanos: bigint) => holdRequest(trial.store, tenantId, nanos);
    const settle = (draft: Draft, costNanos: bigint) => settleRequest(trial.store, draft, costNanos);
    const intents = () => database.query('SELECT id FROM billing.withdrawal_intent');

    it('books a balanced refund, withdrawn from the admission store before the balance update', async () => {
      const tenantId = await billing.tenant(1_000);
      const { entry, balanceCents } = await refund(tenantId, 400, 're_1');
      expect(entry).toMatchObject({ type: 'refund', amountCents: -400, source: 'stripe', ref: 're_1' });
      expect(balanceCents).toBe(600);
      expect((await billing.entries(tenantId)).at(-1)).toMatchObject({ id: entry.id, period: '2031-10' });
      expect(await available(tenantId)).toBe(600n * CENT);
      await deliver(tenantId);
      expect(await sums(tenantId)).toMatchObject({ version: 2n, balanceNanos: 600n * CENT });
      expect(
        await database.query(
          `SELECT account, amount_cents::int AS cents FROM billing.posting WHERE entry_id = $1 ORDER BY 1`,
          [entry.id],
        ),
      ).toEqual([
        { account: 'credit', cents: -400 },
        { account: 'payments_clearing', cents: 400 },
      ]);
      expect(await intents()).toEqual([]);
    });

    it('never takes what requests hold, owe, or have used', async () => {
      const tenantId = await billing.tenant(1_000);
      await deliver(tenantId);
      const running = (await admit(tenantId, 300n * CENT))!;
      const settled = (await admit(tenantId, 200n * CENT))!;
      await settle(settled, 150n * CENT + 1n);
      for (const tooMuch of [550, 1_000, 1_001]) {
        await expect(refund(tenantId, tooMuch)).rejects.toMatchObject({ code: 'insufficient_credit' });
      }
      await billing.gatherer.gather([charge(tenantId, 150n * CENT + 1n, { id: settled.id })]);
      await deliver(tenantId);
      await expect(refund(tenantId, 550)).rejects.toThrow(
        /^Only \d\.\d\d USD is available\. Take at most this amount\.$/,
      );
      expect(await refund(tenantId, 549)).toMatchObject({ balanceCents: 451 });
      await trial.store.void([running]);
      expect(await refund(tenantId, 300)).toMatchObject({ balanceCents: 151 });
      await billing.poster.postDue();
      expect((await billing.entries(tenantId)).map((entry) => entry.amount)).toEqual([1_000, -549, -300, -150]);
      expect(await billing.books(tenantId)).toMatchObject({ balance: 1, unposted: 1n });
    });

    it('a refund of all takes the available credit, and its repeat takes nothing more', async () => {
      const tenantId = await billing.tenant(1_000);
      await deliver(tenantId);
      const running = (await admit(tenantId, 300n * CENT))!;
      const settled = (await admit(tenantId, 200n * CENT))!;
      await settle(settled, 150n * CENT + 1n);
      const first = await refund(tenantId, 'all', 'end');
      expect(first).toMatchObject({ entry: { amountCents: -549 }, balanceCents: 451 });
      await deliver(tenantId);
      expect(await refund(tenantId, 'all', 'end')).toEqual({ ...first, created: false });
      await expect(refund(tenantId, 549, 'end')).rejects.toMatchObject({ code: 'ref_conflict' });
      const message = 'No credit is available, so nothing can be taken.';
      await expect(refund(tenantId, 'all', 'more')).rejects.toMatchObject({ code: 'insufficient_credit', message });
      // The rest follows when the request has ended.
      await settle(running, 0n);
      const used = charge(tenantId, 150n * CENT + 1n, { id: settled.id });
      await billing.gatherer.gather([used]);
      await deliver(tenantId);
      expect(await refund(tenantId, 'all', 'more')).toMatchObject({ entry: { amountCents: -300 } });
      expect(await available(tenantId)).toBe(CENT - 1n);
      expect(await intents()).toEqual([]);
      await expectBooksToProve(billing, [used]);
    });

    it('an adjustment with the id of a quarantined charge deals with it', async () => {
      const tenantId = await billing.tenant(1_000);
      await deliver(tenantId);
      const late = charge(tenantId, 3n * CENT, { late: true });
      await billing.gatherer.gather([late]);
      expect(await openRejected(billing.dataSource.manager)).toBe(1);
      await adjust(tenantId, -3, { ref: late.id });
      expect(await openRejected(billing.dataSource.manager)).toBe(0);
      // A repeat of the charge releases its hold.
      expect(await billing.gatherer.gather([late])).toMatchObject({ gathered: 0, repeated: 1, rejected: 0 });
      expect((await billing.updates(tenantId)).at(-1)).toMatchObject({ releases: [late.id] });
    });

    it('an adjustment of all writes off credit, or a debt, to less than a cent', async () => {
      const tenantId = await billing.tenant(1_000);
      await deliver(tenantId);
      expect(await adjust(tenantId, 'all')).toMatchObject({
        entry: { type: 'adjustment', amountCents: -1_000 },
        balanceCents: 0,
      });
      await expect(adjust(tenantId, 'all')).rejects.toMatchObject({ code: 'insufficient_credit' });
      await adjust(tenantId, -500, { allowDebt: true });
      expect(await adjust(tenantId, 'all', { ref: 'debt' })).toMatchObject({
        entry: { amountCents: 500 },
        balanceCents: 0,
      });
      expect(await adjust(tenantId, 'all', { ref: 'debt' })).toMatchObject({ entry: { amountCents: 500 } });
      // Usage that the balance does not pay for is a debt, too.
      await billing.gatherer.gather([charge(tenantId, 7n * CENT + 1n)]);
      expect(await adjust(tenantId, 'all')).toMatchObject({ entry: { amountCents: 8 } });
      await expect(refund(tenantId, 'all')).rejects.toMatchObject({ code: 'insufficient_credit' });
    });

    it('a refused refund writes and publishes nothing', async () => {
      const tenantId = await billing.tenant(10);
      const [books, updates] = [await billing.books(tenantId), await billing.updates(tenantId)];
      await expect(refund(tenantId, 11)).rejects.toMatchObject({ code: 'insufficient_credit' });
      await deliver(tenantId);
      await admit(tenantId, 10n * CENT);
      await expect(refund(tenantId, 1)).rejects.toMatchObject({ code: 'insufficient_credit' });
      expect(await billing.books(tenantId)).toEqual(books);
      expect(await billing.updates(tenantId)).toEqual(updates);
      expect(await intents()).toEqual([]);
    });

    it('a repeat with the same source and ref returns the first entry, and other input is a conflict', async () => {
      const tenantId = await billing.tenant(1_000);
      const replies = await Promise.all(Array.from({ length: 8 }, () => refund(tenantId, 700, 're_2')));
      expect(replies.filter(({ created }) => created)).toHaveLength(1);
      const repeat = { ...replies[0]!, created: false };
      for (const reply of replies) expect({ ...reply, created: false }).toEqual(repeat);
      expect(repeat.balanceCents).toBe(300);
      // The refund is no longer affordable, but a repeat gets the first answer.
      await billing.topUps.add({ tenantId, amountCents: 7, source: 'stripe', ref: 'pi_2' });
      expect(await refund(tenantId, 700, 're_2')).toEqual(repeat);
      await expect(refund(tenantId, 701, 're_2')).rejects.toMatchObject({ code: 'ref_conflict' });
      await expect(
        trial.moneyOut.refund({ tenantId, amountCents: 700, source: 'stripe', ref: 're_2', reason: 'other' }),
      ).rejects.toMatchObject({ code: 'ref_conflict' });
      await expect(
        billing.topUps.add({ tenantId, amountCents: 700, source: 'stripe', ref: 're_2' }),
      ).rejects.toMatchObject({ code: 'ref_conflict' });
      expect(await billing.entries(tenantId)).toHaveLength(3);
      expect(await intents()).toEqual([]);
    });

    it.each([0, -5, 1.5, NaN, Infinity, '5', null, MAX_ENTRY_CENTS + 1, 2 ** 53, 2 ** 64])(
      'a refund of %p cents is refused and writes nothing',
      async (amount) => {
        const tenantId = newId('ten');
        await expect(refund(tenantId, amount as number)).rejects.toMatchObject({ code: 'invalid_amount' });
        expect(await database.query('SELECT FROM billing.tenant_books WHERE tenant_id = $1', [tenantId])).toEqual([]);
      },
    );

    it('a refund for a tenant that auth does not know is refused and writes nothing', async () => {
      const tenantId = newId('ten');
      billing.unknownTenants.add(tenantId);
      await expect(refund(tenantId, 5)).rejects.toMatchObject({ code: 'not_found' });
      await expect(adjust(tenantId, 5)).rejects.toMatchObject({ code: 'not_found' });
      await expect(adjust(tenantId, -5)).rejects.toMatchObject({ code: 'not_found' });
      expect(await database.query('SELECT FROM billing.tenant_books WHERE tenant_id = $1', [tenantId])).toEqual([]);
      expect(await intents()).toEqual([]);
    });

    it('the money is available again when the database is lost after the withdrawal', async () => {
      const tenantId = await billing.tenant(1_000);
      const losing = withdrawing(trial.store, async () => {
        await database.query(
          `SELECT pg_terminate_backend(pid)
           FROM pg_stat_activity
           WHERE application_name = 'tollgate-billing' AND state LIKE 'idle in transaction%'
             AND datname = current_database()`,
        );
      });
      const out = trial.over(losing);
      await expect(refund(tenantId, 600, 're_3', out)).rejects.toThrow();
      await deliver(tenantId);
      expect(await available(tenantId)).toBe(1_000n * CENT);
      expect(await intents()).toEqual([]);
      expect(await refund(tenantId, 600, 're_3')).toMatchObject({ balanceCents: 400 });
    });

    it('the money is given back once it is overdue when the process died after the withdrawal', async () => {
      const tenantId = await billing.tenant(1_000);
      await deliver(tenantId);
      const id = newId('msg');
      await database.query('INSERT INTO billing.withdrawal_intent (id, tenant_id) VALUES ($1, $2)', [id, tenantId]);
      await trial.store.withdraw({ tenantId, version: 2n, nanos: 900n * CENT });
      expect(await trial.moneyOut.giveBackAbandoned()).toBe(0);
      await deliver(tenantId);
      expect(await available(tenantId)).toBe(100n * CENT);
      await database.query(`UPDATE billing.withdrawal_intent SET created_at = now() - interval '11 s'`);
      expect(await Promise.all([trial.moneyOut.giveBackAbandoned(), trial.moneyOut.giveBackAbandoned()])).toContain(1);
      await deliver(tenantId);
      expect(await available(tenantId)).toBe(1_000n * CENT);
      expect(await intents()).toEqual([]);
    });

    it('an adjustment is signed, has a reason, and is limited like a refund unless debt is allowed', async () => {
      const tenantId = await billing.tenant(100);
      const entry = { type: 'adjustment', amountCents: 50, reason: 'goodwill' };
      expect((await adjust(tenantId, 50)).entry).toMatchObject(entry);
      await expect(adjust(tenantId, -151)).rejects.toMatchObject({ code: 'insufficient_credit' });
      expect(await adjust(tenantId, -150)).toMatchObject({ balanceCents: 0 });
      const most = -MAX_ENTRY_CENTS; // More nanos than 64 bits have.
      expect(await adjust(tenantId, most, { allowDebt: true })).toMatchObject({ balanceCents: most });
      await deliver(tenantId);
      expect(await admit(tenantId, 1n)).toBeNull();
      await expect(refund(tenantId, 1)).rejects.toMatchObject({ code: 'insufficient_credit' });
      for (const no of [0, 1.5]) await expect(adjust(tenantId, no)).rejects.toMatchObject({ code: 'invalid_amount' });
      for (const reason of ['', ' ', 'x'.repeat(501), 'nul\0', undefined as unknown as string]) {
        const wanted = { tenantId, amountCents: 1, source: 'manual', ref: 'r', reason };
        await expect(trial.moneyOut.adjust(wanted)).rejects.toMatchObject({ code: 'invalid_parameter' });
      }
    });

    it('refunds beside requests never take the balance below zero, and every cent is accounted for', async () => {
      const START_CENTS = 3_000;
      const tenantId = await billing.tenant(START_CENTS);
      await deliver(tenantId);
      const charges: ReturnType<typeof charge>[] = [];
      let [refunded, served, running, ended] = [0, 0, 6, 0];
      /** Waits for a refund, or its refusal, so that the credit is not spent before the first one. */
      const oneMore = (than: number) => eventually(() => expect(ended).toBeGreaterThan(than));
      const requests = async (seed: number) => {
        for (let i = 0; i < 30; i++) {
          const nanos = BigInt(1 + ((seed * 31 + i * 17) % 40)) * CENT + 3n;
          const draft = await admit(tenantId, nanos);
          if (!draft) continue;
          const cost = nanos - BigInt((seed + i) % 5) * 1_234_567n;
          await settle(draft, cost);
          served++;
          const one = charge(tenantId, cost, { id: draft.id });
          charges.push(one);
          await billing.gatherer.gather([one]);
          if (i % 2 === 0) await billing.poster.postDue();
          if (i % 5 === 0) await oneMore(ended);
        }
        running--;
      };
      const refunds = async (seed: number) => {
        for (let i = 0; running > 0; i++) {
          const amount = 1 + ((seed * 7 + i * 13) % 60);
          await refund(tenantId, amount).then(
            () => (refunded += amount),
            (error: { code?: string }) => expect(error.code).toBe('insufficient_credit'),
          );
          ended++;
        }
      };
      const watch = async () => {
        while (running > 0) {
          await deliver(tenantId);
          // The balance, not what is available: while an update is on its way, a gathered charge and its unreleased
          // hold both count.
          expect((await sums(tenantId)).balanceNanos).toBeGreaterThanOrEqual(0n);
          const { balance, unposted } = await billing.books(tenantId);
          expect(BigInt(balance) * CENT - unposted).toBeGreaterThanOrEqual(0n);
        }
      };
      await Promise.all([...[1, 2, 3, 4, 5, 6].map(requests), refunds(1), refunds(2), watch()]);
      await billing.poster.postDue();
      await deliver(tenantId);
      const { balance, unposted } = await billing.books(tenantId);
      const spent = charges.reduce((sum, one) => sum + BigInt(one.costNanos), 0n);
      const balanceNanos = BigInt(balance) * CENT - unposted;
      expect(BigInt(START_CENTS - refunded) * CENT - spent).toBe(balanceNanos);
      expect(await sums(tenantId)).toMatchObject({ settledNanos: 0n, pendingNanos: 0n, balanceNanos });
      expect([refunded > 0, served > 0]).toEqual([true, true]);
      await expectBooksToProve(billing, charges);
      expect(await intents()).toEqual([]);
    });
  });
}
