import { PostgresAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { textOf } from '../docs/document';
import { Books, type Served } from './books';

const RUNBOOK = 'docs/operating/runbooks/TollgateReconcileDiffers.md';
/** Each block of SQL of the runbook, by its first words with the name of a table. */
const MENDS = new Map(
  [...textOf(RUNBOOK).matchAll(/```sql\s+(?:BEGIN;\s+)?((\w+ \w* ?(?:billing|metering)\.\w+).*?)```/gs)].map(
    ([, sql, words]) => [words!, sql!.replace('COMMIT;', '')],
  ),
);

let admission: PostgresAdmissionStore;
// Runs before the hook of the database, which needs all connections closed.
afterAll(() => admission.close());
const database = useTestDatabase();

describe('the SQL of the runbook of reconcile', () => {
  let books: Books;
  let served: Served;
  let period: string;
  beforeAll(async () => {
    admission = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await admission.start();
    books = new Books(database, admission);
    await books.start();
    served = await books.serve();
    const [month] = await database.query<{ period: string }>('SELECT DISTINCT period FROM billing.budget_month');
    period = month!.period;
  });
  afterAll(() => books.stop());

  const putRight = async (block: string, spoil: string) => {
    await books.spoil(spoil, []);
    const [difference] = await books.reconcile();
    const nanos = (text?: string) => /(\d+) nanos/.exec(text ?? '')?.[1] ?? '';
    const values = Object.entries({
      'ten_…': served.tenantId,
      'key_…': served.keyId,
      '2026-11': period,
      '2026-10': '2001-01',
      1234: nanos(difference?.expected),
      1200: nanos(difference?.actual),
    });
    const sql = values.reduce((text, [example, value]) => text.replaceAll(example, value), MENDS.get(block)!);
    await database.query(sql);
    expect(await books.reconcile()).toEqual([]);
  };

  const ofKey = (text: string) => `${text} WHERE key_id <> ''`;
  it.each([
    [
      'the spending of a key',
      'INSERT INTO billing.budget_month',
      ofKey('UPDATE billing.budget_month SET spent_nanos = 1'),
    ],
    ['a missing spending', 'INSERT INTO billing.budget_month', ofKey('DELETE FROM billing.budget_month')],
    [
      'a month that was closed by hand',
      'ALTER TABLE billing.tenant_month',
      'UPDATE billing.tenant_month SET closed_at = now()',
    ],
    ['another currency', 'INSERT INTO billing.books_currency', `UPDATE billing.books_currency SET currency = 'EUR'`],
    ['no currency', 'INSERT INTO billing.books_currency', 'DELETE FROM billing.books_currency'],
    ['no counter of invoices', 'INSERT INTO billing.invoice_counter', 'DELETE FROM billing.invoice_counter'],
    [
      'a closed month that is not over',
      'ALTER TABLE billing.invoice_counter',
      `UPDATE billing.invoice_counter SET closed_through = '9998-01'`,
    ],
    [
      'a day that is not the sum of its hours',
      'UPDATE metering.usage_folded',
      `INSERT INTO metering.usage_day
       SELECT tenant_id, date_trunc('day', hour, 'UTC'), model, key_id, 1, 1, 1, 1, 0, 0, 1, 0, 0
       FROM metering.usage_hour`,
    ],
  ])('puts %s right', (_, block, spoil) => putRight(block, spoil));

  it('puts a counter right whose number an invoice has', async () => {
    await books.close(served);
    await putRight('INSERT INTO billing.invoice_counter', 'UPDATE billing.invoice_counter SET last_number = 0');
  });
});
