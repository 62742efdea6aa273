import { databaseClock } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { InvoiceCloser } from '../invoices/invoice-closer';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { ChargeGatherer } from './charge-gatherer';

const HOUR_MS = 3_600_000;
const database = useTestDatabase();

describe('a late charge', () => {
  const billing = useBilling(database);
  const right = new Date('2030-03-01T12:00:00.000Z');
  const own = '2030-02-20T00:00:00.000Z';
  beforeAll(async () => {
    const options = { postingIntervalMs: 0, closeDelayMs: HOUR_MS, now: () => right };
    await new InvoiceCloser(billing.dataSource, options).closeDue();
  });

  /** The month to which a gatherer with these clocks bills a charge of the closed month. */
  async function billed(now: Date, ofDatabase: Date): Promise<string> {
    const clocks = { now: () => now, databaseNow: async () => ofDatabase };
    const gatherer = new ChargeGatherer(billing.dataSource, { postingIntervalMs: 0, ...clocks });
    const tenantId = await billing.tenant(100);
    const late = charge(tenantId, 3n * CENT, { endedAt: own });
    await gatherer.gather([late]);
    await expectBooksToProve(billing, [late]);
    const [month] = await database.query<{ period: string }>(
      'SELECT period FROM billing.tenant_month WHERE tenant_id = $1',
      [tenantId],
    );
    return month!.period;
  }

  it.each([
    ['the clock of the process is ahead', new Date('2051-06-01T00:00:00Z'), right],
    ['the clock of PostgreSQL is ahead', right, new Date('2051-06-01T00:00:00Z')],
    ['the clock of the process is still in its own month', new Date(own), right],
    ['the clock of the process is a year behind', new Date('2029-03-01T00:00:00Z'), right],
    ['both clocks are right', right, right],
  ])('is billed in the next month, which is running, when %s', async (_, now, ofDatabase) => {
    expect(await billed(now, ofDatabase)).toBe('2030-03');
  });

  it('is the only reason to ask PostgreSQL for its clock', async () => {
    const databaseNow = jest.fn(databaseClock);
    const gatherer = new ChargeGatherer(billing.dataSource, { postingIntervalMs: 0, now: () => right, databaseNow });
    const tenantId = await billing.tenant(100);
    await gatherer.gather([charge(tenantId, CENT, { endedAt: right.toISOString() })]);
    expect(databaseNow).not.toHaveBeenCalled();
    await gatherer.gather([charge(tenantId, CENT, { endedAt: own })]);
    expect(databaseNow).toHaveBeenCalledTimes(1);
  });
});
