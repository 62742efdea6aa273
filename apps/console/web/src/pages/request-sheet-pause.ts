import type { RequestBooks } from '../../../src/api/answers';

/** While the charge is on its way to the books, and then to the ledger. */
const REFRESH_MS = 2_000;
/** An invoice is issued after the end of its month. */
const INVOICE_MS = 30_000;

/** From one question for the books of a request to the next. False: nothing in them will change. */
export function pauseOfSheetMs(request: Pick<RequestBooks, 'books'> | undefined): number | false {
  if (request === undefined) return false;
  const { books } = request;
  if (books === null || (books.entry === null && !books.carriedOn)) return REFRESH_MS;
  return books.invoice === null && !books.monthClosed ? INVOICE_MS : false;
}
