import type { AdmissionStore } from '@tollgate/admission';
import type { Charge } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { InvoiceCloser } from '../invoices/invoice-closer';
import { CENT, charge, expectBooksToProve } from '../testing/billing.fixture';
import { holdBooks } from '../testing/held-books.fixture';
import { holdRequest, settleRequest } from '../testing/held-request.fixture';
import { useMoneyOut } from './money-out.fixture';

const USED = 74_400n;
const WHY = 'The last cent of a closed tenant: usage took 0.0074400 of it.';

/** A closed tenant ends at 0.00, beside a real admission store. Both implementations must pass it. */
export function lastCentSuite(openStore: (databaseUrl: string) => AdmissionStore): void {
  const database = useTestDatabase();
  describe('the last cent of a closed tenant', () => {
    const trial = useMoneyOut(database, openStore);
    const { billing, deliver, sums } = trial;

    const refund = (tenantId: string, ref = 'end', reason?: string) =>
      trial.moneyOut
        .refund({ tenantId, amountCents: 'all', source: 'stripe', ref, ...(reason !== undefined && { reason }) })
        .then(({ reply }) => reply);
    const writeOff = (tenantId: string, ref = 'end') =>
      trial.moneyOut
        .adjust({ tenantId, amountCents: 'all', source: 'manual', ref, reason: 'contract ended' })
        .then(({ reply }) => reply);
    const entries = async (tenantId: string) =>
      (await billing.entries(tenantId)).map(({ type, amount, ref }) => [type, amount, ref]);
    const gather = async (tenantId: string, nanos: bigint, more: Partial<Charge> = {}) => {
      const one = charge(tenantId, nanos, more);
      await billing.gatherer.gather([one]);
      await deliver(tenantId);
      return one;
    };
    /** Topped up with 3.00, and closed after this usage. */
    const closedWith = async (nanos: bigint) => {
      const tenantId = await billing.tenant(300);
      const used = await gather(tenantId, nanos);
      await billing.poster.postDue();
      await deliver(tenantId);
      billing.closedTenants.add(tenantId);
      return { tenantId, used };
    };
    const expectCleared = async (tenantId: string, unposted: bigint, charges: readonly Charge[]) => {
      await billing.poster.postDue();
      await deliver(tenantId);
      expect(await billing.books(tenantId)).toMatchObject({ balance: 0, unposted, due: false });
      expect(await sums(tenantId)).toMatchObject({ balanceNanos: -unposted, withdrawnNanos: 0n });
      await expectBooksToProve(billing, charges);
    };

    it('is written off before the refund, which pays the rest, and a repeat answers the first refund', async () => {
      const { tenantId, used } = await closedWith(USED);
      const first = await refund(tenantId);
      expect(first).toMatchObject({ entry: { type: 'refund', amountCents: -299 }, balanceCents: 0, created: true });
      expect(await refund(tenantId)).toEqual({ ...first, created: false });
      expect(await entries(tenantId)).toEqual([
        ['topup', 300, 'first'],
        ['adjustment', -1, 'entry-2'],
        ['refund', -299, 'end'],
      ]);
      const [row] = await database.query<{ source: string; reason: string }>(
        `SELECT source, reason FROM billing.journal_entry WHERE tenant_id = $1 AND ref = 'entry-2'`,
        [tenantId],
      );
      expect(row).toEqual({ source: 'last-cent', reason: WHY });
      await expectCleared(tenantId, USED, [used]);
      for (const again of [refund(tenantId, 'more'), writeOff(tenantId, 'more')])
        await expect(again).rejects.toMatchObject({ code: 'insufficient_credit' });
      await expectCleared(tenantId, USED, [used]);
      await expect(
        billing.topUps.add({ tenantId, amountCents: 1, source: 'last-cent', ref: 'x' }),
      ).rejects.toMatchObject({ code: 'invalid_parameter' });
    });

    it('is written off with the rest by one entry', async () => {
      const { tenantId, used } = await closedWith(12n * CENT + USED);
      expect(await writeOff(tenantId)).toMatchObject({
        entry: { type: 'adjustment', amountCents: -288, reason: 'contract ended' },
        balanceCents: 0,
      });
      await expectCleared(tenantId, USED, [used]);
    });

    it('that an earlier refund left is written off in place of the next, whose repeat finds it', async () => {
      const { tenantId, used } = await closedWith(USED);
      billing.closedTenants.delete(tenantId);
      expect(await refund(tenantId, 'before')).toMatchObject({ entry: { amountCents: -299 }, balanceCents: 1 });
      await expect(refund(tenantId)).rejects.toMatchObject({ code: 'insufficient_credit' });
      billing.closedTenants.add(tenantId);
      const first = await refund(tenantId);
      expect(first).toMatchObject({ entry: { type: 'adjustment', amountCents: -1, reason: WHY }, balanceCents: 0 });
      expect(await refund(tenantId)).toEqual({ ...first, created: false });
      await expect(refund(tenantId, 'end', 'other')).rejects.toMatchObject({ code: 'ref_conflict' });
      await expectCleared(tenantId, USED, [used]);
    });

    it('is written off by a refund that waited for the books while the tenant was closed', async () => {
      const { tenantId, used } = await closedWith(USED);
      billing.closedTenants.delete(tenantId);
      const held = await holdBooks(database, billing.dataSource, tenantId);
      const waiting = refund(tenantId);
      await held.awaitWaiting(1);
      billing.closedTenants.add(tenantId);
      await held.release();
      expect(await waiting).toMatchObject({ entry: { type: 'refund', amountCents: -299 }, balanceCents: 0 });
      await expectCleared(tenantId, USED, [used]);
    });

    it('stays while a request runs, and while its usage is on its way to the books', async () => {
      const tenantId = await billing.tenant(300);
      const before = await gather(tenantId, USED);
      const running = (await holdRequest(trial.store, tenantId, 100n * CENT))!;
      billing.closedTenants.add(tenantId);
      expect(await refund(tenantId, 'end-1')).toMatchObject({ entry: { amountCents: -199 }, balanceCents: 101 });
      await expect(refund(tenantId, 'end-2')).rejects.toMatchObject({ code: 'insufficient_credit' });
      await settleRequest(trial.store, running, 100n * CENT);
      await expect(refund(tenantId, 'end-2')).rejects.toMatchObject({ code: 'insufficient_credit' });
      const after = await gather(tenantId, 100n * CENT, { id: running.id });
      expect(await refund(tenantId, 'end-2')).toMatchObject({ entry: { type: 'adjustment', amountCents: -1 } });
      await expectCleared(tenantId, USED, [before, after]);
    });

    it('of a month that is closed leaves its invoice as it is', async () => {
      const tenantId = await billing.tenant(300);
      const used = await gather(tenantId, 12n * CENT + USED, { endedAt: '2026-01-15T00:00:00.000Z' });
      const closing = { postingIntervalMs: 0, now: () => new Date(), closeDelayMs: 0 };
      await new InvoiceCloser(billing.dataSource, closing).close({ period: '2026-01' });
      await deliver(tenantId);
      const invoice = () => database.query('SELECT * FROM billing.invoice WHERE tenant_id = $1', [tenantId]);
      const issued = await invoice();
      expect(issued).toMatchObject([{ period: '2026-01', amount_cents: '12' }]);
      billing.closedTenants.add(tenantId);
      expect(await refund(tenantId)).toMatchObject({ entry: { amountCents: -287 }, balanceCents: 0 });
      await expectCleared(tenantId, USED, [used]);
      expect(await invoice()).toEqual(issued);
    });

    it('does not keep late usage out of the books, and a debt of it is written off to 0.00 as well', async () => {
      const { tenantId, used } = await closedWith(USED);
      await refund(tenantId);
      const part = await gather(tenantId, 9_000_000n);
      await expectCleared(tenantId, USED + 9_000_000n, [used, part]);
      await expect(writeOff(tenantId, 'late')).rejects.toMatchObject({ code: 'insufficient_credit' });
      const late = await gather(tenantId, 2n * CENT);
      await billing.poster.postDue();
      expect(await billing.books(tenantId)).toMatchObject({ balance: 0, unposted: USED + 9_000_000n + 2n * CENT });
      expect(await writeOff(tenantId, 'late')).toMatchObject({ entry: { amountCents: 2 } });
      await expectCleared(tenantId, USED + 9_000_000n, [used, part, late]);
      expect((await entries(tenantId)).at(-1)).toEqual(['usage', -2, expect.stringMatching(/:1-3$/)]);
    });

    it('is not written off of a tenant that is not closed', async () => {
      const tenantId = await billing.tenant(1);
      const used = await gather(tenantId, USED);
      for (const all of [refund(tenantId), writeOff(tenantId)])
        await expect(all).rejects.toMatchObject({ code: 'insufficient_credit' });
      expect(await billing.books(tenantId)).toMatchObject({ balance: 1, unposted: USED });
      await expectBooksToProve(billing, [used]);
    });
  });
}
