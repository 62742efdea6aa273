import { useTestDatabase } from '@tollgate/testing';
import { InvoiceCloser } from '../invoices/invoice-closer';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { auditLedger } from './audit';
import { auditInvoiceNumbers } from './invoice-audit';

const database = useTestDatabase();

describe('the audit of invoices', () => {
  const billing = useBilling(database);
  const tenants: string[] = [];
  beforeAll(async () => {
    for (let i = 0; i < 3; i++) {
      tenants.push(await billing.tenant(100));
      await billing.gatherer.gather([charge(tenants[i]!, 5n * CENT, { endedAt: '2026-10-10T00:00:00Z' })]);
    }
    const now = () => new Date('2026-11-01T00:00:00Z');
    await new InvoiceCloser(billing.dataSource, { postingIntervalMs: 0, closeDelayMs: 0, now }).closeDue();
  });
  const found = async () => [
    ...(await auditInvoiceNumbers(billing.dataSource)).differences,
    ...(await auditLedger(billing.dataSource, tenants)).differences,
  ];
  /** Runs with every right, past every trigger. */
  const corrupt = async (...statements: string[]) => {
    await database.query(`SET session_replication_role = replica`);
    for (const statement of statements) await database.query(statement);
    await database.query(`SET session_replication_role = origin`);
  };

  it('finds nothing in sound invoices', async () => {
    expect(await found()).toEqual([]);
  });

  it('names a wrong amount, a missing invoice, and a gap in the numbers', async () => {
    await corrupt('UPDATE billing.invoice SET amount_cents = 6 WHERE accounting_number = 1');
    expect(await found()).toMatchObject([
      {
        check: 'every invoice is the sum of the usage entries of its month',
        expected: expect.stringContaining('5 cents'),
        actual: expect.stringContaining('6 cents'),
      },
    ]);
    await corrupt('UPDATE billing.invoice SET amount_cents = 5 WHERE accounting_number = 1');
    await corrupt(
      'CREATE TABLE kept AS SELECT * FROM billing.invoice WHERE accounting_number = 2',
      'DELETE FROM billing.invoice WHERE accounting_number = 2',
    );
    expect(await found()).toMatchObject([
      { check: 'invoices are numbered without a gap', expected: 'invoice 2', actual: 'invoice 3' },
      { check: 'every closed month that was debited has its invoice', expected: '2026-10: an invoice of 5 cents' },
    ]);
    await corrupt(
      'INSERT INTO billing.invoice SELECT * FROM kept',
      'DELETE FROM billing.invoice WHERE accounting_number = 3',
    );
    expect(await found()).toMatchObject([
      { check: 'invoices are numbered without a gap', expected: 'invoice 3', actual: 'invoice 4' },
      { check: 'every closed month that was debited has its invoice' },
    ]);
  });
});
