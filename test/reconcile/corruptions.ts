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
