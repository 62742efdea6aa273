import { PostgresAdmissionStore } from '@tollgate/admission';
import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { Books } from './books';

/** More comparisons than reconcile makes before it reports a difference. */
const MANY_LOOKS = 14;
const DEADLINE_MS = 60_000;

let admission: PostgresAdmissionStore;
// Runs before the hook of the database, which needs all connections closed.
afterAll(() => admission.close());
const database = useTestDatabase();

describe('reconcile while a refund has left the admission store but is not in the books', () => {
  let books: Books;
  beforeAll(async () => {
    admission = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await admission.start();
    books = new Books(database, admission);
    await books.start();
  });
  afterAll(() => books.stop());

  it('waits for the refund, and finds no difference when it is booked', async () => {
    const { tenantId } = await books.serve();
    const held = new Client({ connectionString: database.url, application_name: 'test' });
    await held.connect();
    try {
      // Reads are possible, but the entry of the refund waits here, after the store has granted the money.
      await held.query('BEGIN; LOCK TABLE billing.journal_entry IN EXCLUSIVE MODE');
      const before = await balanceNanos(tenantId);
      const refund = books.messages.request(
        'billing.credit.refund',
        { tenantId, amountCents: 100, source: 'manual', ref: 'back' },
        { deadlineMs: DEADLINE_MS },
      );
      await eventually(async () => expect(await balanceNanos(tenantId)).toBeLessThan(before));

      const looks = jest.spyOn(admission, 'snapshot');
      const { id } = await books.messages.request('billing.reconcile.start', {});
      await eventually(() => expect(looks.mock.calls.length).toBeGreaterThan(MANY_LOOKS), { timeoutMs: 20_000 });
      expect(await books.messages.request('billing.reconcile.get', { id })).toMatchObject({
        state: 'running',
        differenceCount: 0,
      });

      await held.query('COMMIT');
      await refund;
      const report = await eventually(
        async () => {
          const run = await books.messages.request('billing.reconcile.get', { id });
          if (run.state !== 'done') throw new Error(JSON.stringify(run));
          return run.report;
        },
        { timeoutMs: 20_000 },
      );
      expect(report.differences).toEqual([]);
    } finally {
      await held.end();
    }
  });

  async function balanceNanos(tenantId: string): Promise<bigint> {
    return (await admission.snapshot({ tenantId, limit: 1 }))[0]!.balanceNanos;
  }
});
