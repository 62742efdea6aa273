import { newId } from '@tollgate/contracts';
import { sqlState } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { billingSummary } from '../summary/billing-summary';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { InvoiceCloser } from './invoice-closer';
import { Invoices } from './invoices';

const database = useTestDatabase();

describe('invoices', () => {
  const billing = useBilling(database);
  let invoices: Invoices;
  let closer: InvoiceCloser;
  beforeAll(() => {
    const now = () => new Date('2031-01-01T00:00:00Z');
    invoices = new Invoices(billing.dataSource, { postingIntervalMs: 0, now });
    closer = new InvoiceCloser(billing.dataSource, { postingIntervalMs: 0, closeDelayMs: 0, now });
  });
  /** Creates a tenant with an invoice of this many cents for 2026-10. */
  const invoiced = async (cents: bigint, credit = 100) => {
    const tenantId = await billing.tenant(credit);
    const one = charge(tenantId, cents * CENT, { endedAt: '2026-10-10T00:00:00Z' });
    await billing.gatherer.gather([one]);
    await closer.close({ period: '2026-10', tenantId });
    const [invoice] = (await invoices.list({ tenantId })).data;
    return { tenantId, charges: [one], invoice: invoice! };
  };
  const voided = (accountingNumber: number, reason = 'wrong price') =>
    invoices.void({ accountingNumber, reason }).then(({ reply }) => reply);

  it('are listed by number, newest first, in pages, by tenant and by month', async () => {
    const made = [];
    for (let i = 0; i < 5; i++) made.push(await invoiced(BigInt(i + 1)));
    const numbers = made.map(({ invoice }) => invoice.accountingNumber).reverse();
    const first = await invoices.list({ limit: 2 });
    expect(first.data.map((one) => one.accountingNumber)).toEqual(numbers.slice(0, 2));
    const rest = await invoices.list({ after: first.nextCursor! });
    expect([rest.data.map((one) => one.accountingNumber), rest.nextCursor]).toEqual([numbers.slice(2), null]);
    const { tenantId, invoice } = made[3]!;
    expect(await invoices.list({ tenantId })).toEqual({ data: [invoice], nextCursor: null });
    expect(invoice).toEqual({
      tenantId,
      period: '2026-10',
      amountCents: 4,
      status: 'paid',
      accountingNumber: expect.any(Number),
      createdAt: '2031-01-01T00:00:00.000Z',
      voidedAt: null,
    });
    expect((await invoices.list({ period: '2026-09' })).data).toEqual([]);
    for (const wrong of [{ limit: 0 }, { limit: 201 }, { after: 'x' }, { after: '-1' }]) {
      await expect(invoices.list(wrong)).rejects.toMatchObject({ code: 'invalid_parameter' });
    }
  });

  it('are read by number, by their own tenant alone', async () => {
    const [{ tenantId, invoice }, other] = [await invoiced(2n), await invoiced(3n)];
    const { accountingNumber } = invoice;
    expect(await invoices.get({ tenantId, accountingNumber })).toEqual(invoice);
    for (const wrong of [
      { tenantId: other.tenantId, accountingNumber },
      { tenantId, accountingNumber: 999_999 },
      { tenantId, accountingNumber: NaN },
    ])
      await expect(invoices.get(wrong)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('give their amount back once when they are made void, by an entry that reverses the revenue', async () => {
    const { tenantId, charges, invoice } = await invoiced(40n);
    const replies = await Promise.all(Array.from({ length: 5 }, () => voided(invoice.accountingNumber)));
    for (const reply of replies) expect(reply).toEqual(replies[0]);
    expect(replies[0]).toMatchObject({
      balanceCents: 100,
      invoice: { ...invoice, status: 'void', voidedAt: expect.any(String) },
      entry: { type: 'adjustment', amountCents: 40, source: 'invoice', reason: 'wrong price' },
    });
    expect(
      await database.query(
        `SELECT account, balance_cents::int AS cents
         FROM billing.account_balance
         WHERE tenant_id = $1 AND account <> 'payments_clearing'
         ORDER BY 1`,
        [tenantId],
      ),
    ).toEqual([
      { account: 'credit', cents: 100 },
      { account: 'usage_revenue', cents: 0 },
    ]);
    expect((await billing.entries(tenantId)).at(-1)).toMatchObject({ type: 'adjustment', period: '2031-01' });
    const summary = await billingSummary(billing.dataSource, { tenantId });
    expect(summary.invoices.at(-1)).toMatchObject({
      period: '2026-10',
      amountCents: 40,
      status: 'void',
      accountingNumber: invoice.accountingNumber,
    });
    expect(summary.balanceCents).toBe(100);
    await expect(voided(invoice.accountingNumber, 'another reason')).rejects.toMatchObject({ code: 'ref_conflict' });
    await expectBooksToProve(billing, charges);
    expect((await billing.updates(tenantId)).at(-1)).toMatchObject({ balanceNanos: String(100n * CENT) });
  });

  it('are refused when they do not exist, or are made void without a reason', async () => {
    for (const number of [0, -1, 1.5, 10_000_000, NaN, '1; --' as unknown as number])
      await expect(voided(number)).rejects.toMatchObject({ code: 'not_found' });
    const { invoice } = await invoiced(1n);
    for (const reason of ['', ' ', 5 as unknown as string, undefined as unknown as string])
      await expect(invoices.void({ accountingNumber: invoice.accountingNumber, reason })).rejects.toMatchObject({
        code: 'invalid_parameter',
      });
  });

  it('reserve the source of their reversal', async () => {
    const tenantId = newId('ten');
    await expect(
      billing.topUps.add({ tenantId, amountCents: 1, source: 'invoice', ref: 'void-1' }),
    ).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  describe('the database refuses', () => {
    it.each([
      'UPDATE billing.invoice SET amount_cents = amount_cents + 1',
      'DELETE FROM billing.invoice',
      'TRUNCATE billing.invoice CASCADE',
      'UPDATE billing.invoice_void SET created_at = now()',
      'DELETE FROM billing.invoice_void',
      'DELETE FROM billing.tenant_month',
    ])('%s, by right and by trigger', async (sql) => {
      const error = await billing.dataSource.query(sql).catch((thrown: unknown) => thrown);
      expect([sqlState(error), String(error)]).toEqual(['42501', expect.stringMatching(/permission denied/)]);
      await expect(database.query(sql)).rejects.toThrow(/is append-only/);
    });

    it('any change of a closed month, and further usage in it', async () => {
      const { tenantId } = await invoiced(2n);
      for (const change of ['debited_cents = 3', 'last_seq = last_seq + 1', 'closed_at = NULL', 'closed_at = now()'])
        await expect(
          billing.dataSource.query(`UPDATE tenant_month SET ${change} WHERE tenant_id = $1`, [tenantId]),
        ).rejects.toThrow(/is append-only/);
      await database.query(
        `INSERT INTO billing.charge (id, tenant_id, key_id, cost_nanos, ended_at, period, seq)
         VALUES ($1, $2, 'k', 0, now(), '2026-10', 2)`,
        [newId('req'), tenantId],
      );
      await expect(
        billing.dataSource.query(
          `INSERT INTO coverage (tenant_id, number, period, from_seq, to_seq, charges_nanos, carried_in_nanos,
             amount_cents, carried_out_nanos)
           VALUES ($1, 2, '2026-10', 2, 2, 0, 0, 0, 0)`,
          [tenantId],
        ),
      ).rejects.toThrow(/2026-10 of ten_\w+ is closed/);
    });

    it('a gap in the numbers, a wrong amount, an open month, and a counter that goes back', async () => {
      const { tenantId, invoice } = await invoiced(3n);
      const open = await billing.tenant(100);
      await billing.gatherer.gather([charge(open, 3n * CENT, { endedAt: '2026-10-10T00:00:00Z' })]);
      await billing.poster.postDue();
      const insert = (number: number, tenant: string, cents: number) =>
        billing.dataSource.query(`INSERT INTO invoice VALUES ($1, $2, '2026-10', $3, now())`, [number, tenant, cents]);
      const next = invoice.accountingNumber + 1;
      await expect(insert(next + 1, open, 3)).rejects.toThrow(/no invoice \d+ before it/);
      await expect(insert(next, open, 4)).rejects.toThrow(/debit 3/);
      await expect(insert(next, open, 3)).rejects.toThrow(/closed at/);
      await expect(insert(next, tenantId, 3)).rejects.toThrow(/invoice_of_a_month/);
      await expect(
        billing.dataSource.query('UPDATE invoice_counter SET last_number = last_number - 1'),
      ).rejects.toThrow(/go back/);
    });

    it('a void without the entry that reverses the invoice', async () => {
      const { tenantId, invoice } = await invoiced(5n);
      const { entry } = (await billing.topUps.add({ tenantId, amountCents: 5, source: 'manual', ref: 'x' })).reply;
      await expect(
        billing.dataSource.query('INSERT INTO invoice_void VALUES ($1, $2)', [invoice.accountingNumber, entry.id]),
      ).rejects.toThrow(/does not reverse/);
    });
  });
});
