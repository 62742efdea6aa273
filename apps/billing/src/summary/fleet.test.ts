import { newId, RequestError } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { billingFleet, tenantBalances } from './fleet';

const database = useTestDatabase();
describe('the summary of the books', () => {
  const billing = useBilling(database);
  const MONTH = '2026-03';
  const IN_MONTH = new Date(`${MONTH}-15T00:00:00Z`);

  it('the fleet is the sum of all books, and what waits', async () => {
    const [one, two] = [await billing.tenant(1_000), await billing.tenant(500)];
    const charges = [charge(one, 20n * CENT), charge(two, CENT / 2n)];
    await billing.gatherer.gather(charges);
    await billing.poster.postDue();
    expect(await billingFleet(billing.dataSource)).toMatchObject({
      balanceCents: '1480',
      postedCents: '20',
      unpostedNanos: String(CENT / 2n),
      postingOverdueSeconds: 0,
      uncoveredSeconds: 0,
      rejectedCharges: 0,
    });
  });

  it('balances are those of the asked tenants, with the debits of the month', async () => {
    const tenantId = await billing.tenant(1_000);
    const at = { endedAt: `${MONTH}-10T00:00:00.000Z` };
    await billing.gatherer.gather([charge(tenantId, 20n * CENT, at)]);
    await billing.poster.postDue();
    const { data } = await tenantBalances(billing.dataSource, [tenantId, newId('ten')], IN_MONTH);
    expect(data).toEqual([{ tenantId, balanceCents: 980, debitedCents: 20 }]);
    const later = await tenantBalances(billing.dataSource, [tenantId], new Date('2026-04-01T00:00:00Z'));
    expect(later.data).toEqual([{ tenantId, balanceCents: 980, debitedCents: 0 }]);
    await expect(tenantBalances(billing.dataSource, Array(201).fill(tenantId), IN_MONTH)).rejects.toThrow(RequestError);
  });
});
