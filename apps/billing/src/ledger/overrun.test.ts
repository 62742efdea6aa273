import { useTestDatabase } from '@tollgate/testing';
import { auditLedger } from '../reconcile/audit';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';

const database = useTestDatabase();

describe('service beyond a hold', () => {
  const billing = useBilling(database);
  const accounts = (tenantId: string) =>
    database.query(
      `SELECT account, balance_cents::int AS cents FROM billing.account_balance WHERE tenant_id = $1 ORDER BY 1`,
      [tenantId],
    );
  const unbooked = async (tenantId: string) =>
    (
      await database.query<{ n: string }>('SELECT overrun_nanos AS n FROM billing.tenant_books WHERE tenant_id = $1', [
        tenantId,
      ])
    )[0]!.n;

  it('is booked with the next usage as revenue that the operator pays, in whole cents', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [
      charge(tenantId, 3n * CENT, { overrunNanos: String(2n * CENT + 6n) }),
      charge(tenantId, 4n * CENT, { overrunNanos: String(CENT / 2n) }),
      charge(tenantId, 1n),
    ];
    await billing.gatherer.gather(charges);
    await billing.gatherer.gather(charges);
    await billing.poster.postDue();
    expect(await accounts(tenantId)).toEqual([
      { account: 'credit', cents: 93 },
      { account: 'overrun', cents: -2 },
      { account: 'payments_clearing', cents: -100 },
      { account: 'usage_revenue', cents: 9 },
    ]);
    expect(await unbooked(tenantId)).toBe(String(CENT / 2n + 6n));
    await expectBooksToProve(billing, charges);
    // There is nothing to charge, so it waits for the next usage.
    charges.push(charge(tenantId, 0n, { overrunNanos: String(CENT) }));
    await billing.gatherer.gather(charges.slice(-1));
    await billing.poster.postDue();
    expect(await unbooked(tenantId)).toBe(String(CENT + CENT / 2n + 6n));
    charges.push(charge(tenantId, CENT));
    await billing.gatherer.gather(charges.slice(-1));
    await billing.poster.postDue();
    expect(await accounts(tenantId)).toContainEqual({ account: 'overrun', cents: -3 });
    expect(await unbooked(tenantId)).toBe(String(CENT / 2n + 6n));
    await expectBooksToProve(billing, charges);
  });

  it('is reported by the audit if it is not booked', async () => {
    const tenantId = await billing.tenant(100);
    await billing.gatherer.gather([charge(tenantId, CENT, { overrunNanos: '17' })]);
    await database.query('UPDATE billing.tenant_books SET overrun_nanos = 16 WHERE tenant_id = $1', [tenantId]);
    expect((await auditLedger(billing.dataSource, [tenantId])).differences).toMatchObject([
      { check: 'overruns of the charges = account overrun + not booked yet', expected: '17', actual: '16' },
    ]);
  });

  it('is booked with as many digits as metering accepts', async () => {
    const tenantId = await billing.tenant(100);
    const charges = [charge(tenantId, CENT, { overrunNanos: String(2n ** 63n - 1n) })];
    expect(await billing.gatherer.gather(charges)).toMatchObject({ gathered: 1, rejected: 0 });
    await billing.poster.postDue();
    expect(await unbooked(tenantId)).toBe(String((2n ** 63n - 1n) % CENT));
    await expectBooksToProve(billing, charges);
  });

  it.each(['-1', '1.5', '9223372036854775808', 17 as unknown as string, null as unknown as string])(
    '%p is quarantined',
    async (overrunNanos) => {
      const tenantId = await billing.tenant(100);
      expect(await billing.gatherer.gather([charge(tenantId, CENT, { overrunNanos })])).toMatchObject({
        gathered: 0,
        rejected: 1,
      });
    },
  );
});
