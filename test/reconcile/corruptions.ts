import type { AdmissionStore } from '@tollgate/admission';
import type { PostgresMessages } from '@tollgate/messaging';
import type { TestDatabase } from '@tollgate/testing';
import { Books } from './books';
import { allCorruptions, type Corruption, type Spoilers } from './cases';

const GAP = 'invoices are numbered without a gap';

/**
 * Applies every known corruption to the stores, each to its own tenant. One run must find and name each, and find
 * nothing else.
 */
export function corruptionSuite(
  database: TestDatabase,
  open: () => Promise<{ admission: AdmissionStore; spoilers: Spoilers; messages?: PostgresMessages }>,
): void {
  let books: Books;
  let corruptions: Corruption[];
  beforeAll(async () => {
    const { admission, spoilers, messages } = await open();
    books = new Books(database, admission, messages);
    await books.start();
    corruptions = allCorruptions(books, spoilers);
  });
  afterAll(() => books.stop());

  it('finds no difference in correct books', async () => {
    await books.serve();
    expect(await books.reconcile()).toEqual([]);
  });

  it.each([
    {
      what: 'another currency',
      spoil: `UPDATE billing.books_currency SET currency = 'EUR'`,
      mend: `UPDATE billing.books_currency SET currency = 'USD'`,
      finds: { check: 'the books are in the currency of the configuration', expected: 'USD', actual: 'EUR' },
    },
    {
      what: 'no currency',
      spoil: 'DELETE FROM billing.books_currency',
      mend: `INSERT INTO billing.books_currency (currency) VALUES ('USD')`,
      finds: { check: 'the books are in the currency of the configuration', expected: 'USD', actual: 'none' },
    },
    {
      what: 'no invoice counter',
      spoil: 'DELETE FROM billing.invoice_counter',
      mend: 'INSERT INTO billing.invoice_counter DEFAULT VALUES',
      finds: { check: 'the next invoice has a number', expected: 'invoice 1', actual: 'none' },
    },
    {
      what: 'an invoice counter that is ahead',
      spoil: 'UPDATE billing.invoice_counter SET last_number = 2',
      mend: 'UPDATE billing.invoice_counter SET last_number = 0',
      finds: { check: GAP, expected: 'invoice 1', actual: 'invoice 3', ids: ['1', '2'] },
    },
    {
      what: 'an invoice counter that closes the running month',
      spoil: `UPDATE billing.invoice_counter SET closed_through = '9998-01'`,
      mend: `UPDATE billing.invoice_counter SET closed_through = '0001-01'`,
      finds: { check: 'only months that are over are closed', actual: 'closed through 9998-01' },
    },
  ])('finds $what, which is of no tenant', async ({ spoil, mend, finds }) => {
    await books.spoil(spoil, []);
    try {
      expect(await books.reconcile()).toEqual([expect.objectContaining({ tenantId: '', ids: [], ...finds })]);
    } finally {
      await books.spoil(mend, []);
    }
  });

  it('finds and names every corruption, and nothing else', async () => {
    const sound = await books.serve();
    const cases = await Promise.all(
      corruptions.map(async (corruption) => ({
        corruption,
        served: await books.serve(),
      })),
    );
    for (const { corruption, served } of cases) if (corruption.closed) served.invoice = await books.close(served);
    for (const { corruption, served } of cases) await corruption.spoil(served);
    const differences = await books.reconcile();
    const of = (tenantId: string) => differences.filter((difference) => difference.tenantId === tenantId);
    for (const { corruption, served } of cases) {
      // A gap between invoices belongs to no tenant. It is reported for the tenant of the next invoice.
      const found = differences.filter(({ tenantId, check }) => tenantId === served.tenantId || check === GAP);
      const named = corruption.finds(served).map(([check, ...ids]) => {
        const ofCheck = found.filter((difference) => difference.check === check);
        const all = ofCheck.flatMap((difference) => difference.ids);
        return ofCheck.length > 0 ? [check, ...ids.filter((id) => all.includes(id))] : ['not found', check];
      });
      expect([corruption.what, ...named]).toEqual([corruption.what, ...corruption.finds(served)]);
      if (corruption.only)
        expect([...new Set(of(served.tenantId).map(({ check }) => check))]).toEqual(named.map(([check]) => check));
      if (named.length === 0) expect([corruption.what, ...of(served.tenantId)]).toEqual([corruption.what]);
      for (const { expected, actual } of found) expect(expected).not.toBe(actual);
    }
    expect(of(sound.tenantId)).toEqual([]);
    const spoiled = new Set(cases.map(({ served }) => served.tenantId));
    expect(differences.filter((difference) => !spoiled.has(difference.tenantId))).toEqual([]);
  });
}
