import type { RequestBooks } from '../../../src/api/answers';
import { askAllEveryMs, askFirstEveryMs } from './live-lists';
import { pauseOfSheetMs } from '../pages/request-sheet-pause';

const listOf = (pages: number) => ({ state: { data: { pages: Array(pages).fill(null) } } });
const NOTHING = { state: {} };

it('a list asks for one page every two seconds, however many are loaded', () => {
  expect([NOTHING, listOf(1), listOf(2), listOf(10)].map(askAllEveryMs)).toEqual([2_000, 2_000, 4_000, 20_000]);
});

it('a list with older pages loaded does not ask', () => {
  expect([NOTHING, listOf(1), listOf(2), listOf(10)].map(askFirstEveryMs)).toEqual([2_000, 2_000, false, false]);
});

describe('the sheet of a request asks until nothing will change', () => {
  type Books = NonNullable<RequestBooks['books']>;
  const books = (some: object) => ({ books: { entry: null, carriedOn: false, invoice: null, ...some } as Books });
  it.each<[string, Pick<RequestBooks, 'books'> | undefined, number | false]>([
    ['no answer', undefined, false],
    ['a charge on its way', { books: null }, 2_000],
    ['a charge without an entry', books({}), 2_000],
    ['an entry in an open month', books({ entry: {} }), 30_000],
    ['less than a cent of a month that has ended', books({ carriedOn: true }), 30_000],
    ['an invoice without an entry', books({ invoice: {} }), 2_000],
    ['an entry and an invoice', books({ entry: {}, invoice: {} }), false],
    ['less than a cent of a closed month without an invoice', books({ carriedOn: true, monthClosed: true }), false],
    ['less than a cent, and an invoice', books({ carriedOn: true, invoice: {} }), false],
  ])('%s', (_what, request, pause) => {
    expect(pauseOfSheetMs(request)).toBe(pause);
  });
});
