import { useTestDatabase } from '@tollgate/testing';
import { InvoiceCloser } from '../invoices/invoice-closer';
import { Invoices } from '../invoices/invoices';
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
      'CREATE TABLE kept_3 AS SELECT * FROM billing.invoice WHERE accounting_number = 3',
      'DELETE FROM billing.invoice WHERE accounting_number = 3',
    );
    expect(await found()).toMatchObject([
      { check: 'invoices are numbered without a gap', expected: 'invoice 3', actual: 'invoice 4' },
      { check: 'every closed month that was debited has its invoice' },
    ]);
    await corrupt('INSERT INTO billing.invoice SELECT * FROM kept_3');
    expect(await found()).toEqual([]);
  });

  it('names a counter that would use numbers again', async () => {
    await corrupt('UPDATE billing.invoice_counter SET last_number = 1');
    expect(await found()).toMatchObject([
      { check: 'invoices are numbered without a gap', tenantId: '', expected: 'invoice 4', actual: 'invoice 2' },
    ]);
    await corrupt('UPDATE billing.invoice_counter SET last_number = 3');
    expect(await found()).toEqual([]);
  });

  it('names an invoice whose month is open again', async () => {
    const [{ tenant_id: tenantId } = { tenant_id: '' }] = await database.query<{ tenant_id: string }>(
      'SELECT tenant_id FROM billing.invoice WHERE accounting_number = 1',
    );
    await corrupt(`UPDATE billing.tenant_month SET closed_at = NULL WHERE tenant_id = '${tenantId}'`);
    expect(await found()).toEqual([
      {
        check: 'the month of every invoice is closed',
        tenantId,
        ids: ['1'],
        expected: 'invoice 1, 2026-10: closed',
        actual: 'invoice 1, 2026-10: open',
      },
    ]);
    await corrupt(`UPDATE billing.tenant_month SET closed_at = now() WHERE tenant_id = '${tenantId}'`);
  });

  it('names a month that was closed although charges of it wait, which nothing can post any more', async () => {
    const [tenantId] = tenants as [string];
    await billing.gatherer.gather([charge(tenantId, 5n * CENT, { endedAt: '2026-11-10T00:00:00Z' })]);
    await corrupt(`UPDATE billing.tenant_month SET closed_at = now() WHERE period = '2026-11'`);
    expect(await found()).toEqual([
      {
        check: 'every closed month is covered to its end',
        tenantId,
        ids: [],
        expected: '2026-11: covered to charge 1',
        actual: '2026-11: covered to charge 0',
      },
    ]);
    await corrupt(`UPDATE billing.tenant_month SET closed_at = NULL WHERE period = '2026-11'`);
    expect(await found()).toEqual([]);
  });

  it('names an invoice that is void without its reversing entry, or reversed but not void', async () => {
    const invoices = new Invoices(billing.dataSource, { postingIntervalMs: 0, now: () => new Date('2026-11-02') });
    const { reply } = await invoices.void({ accountingNumber: 1, reason: 'wrong tenant' });
    expect(await found()).toEqual([]);
    const finding = (number: number, expected: string, actual: string) => ({
      check: 'every void invoice has the entry that reverses it',
      ids: [String(number)],
      expected: `invoice ${number}: ${expected}`,
      actual: `invoice ${number}: ${actual}`,
    });
    await corrupt(
      'CREATE TABLE kept_void AS SELECT * FROM billing.invoice_void',
      'DELETE FROM billing.invoice_void WHERE accounting_number = 1',
    );
    expect(await found()).toMatchObject([finding(1, `reversed by ${reply.entry.id}`, 'not void')]);
    await corrupt(
      'INSERT INTO billing.invoice_void SELECT * FROM kept_void',
      'UPDATE billing.invoice_void SET accounting_number = 2 WHERE accounting_number = 1',
    );
    expect(await found()).toMatchObject([
      finding(1, `reversed by ${reply.entry.id}`, 'not void'),
      finding(2, 'not reversed', `void by ${reply.entry.id}`),
    ]);
  });
});
