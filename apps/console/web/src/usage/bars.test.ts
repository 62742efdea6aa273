import type { Usage } from '../../../src/api/answers';
import { barsOf, labelled, placeOf, ticksOf } from './bars';

const DAY = '2026-10-01T00:00:00.000Z';
const point = (name: string | null, costNanos: string, at = DAY) => ({ at, name, costNanos });

/** Two days, with these points. */
function usageOf(names: string[], points: ReturnType<typeof point>[]): Usage {
  return { from: DAY, to: '2026-10-03T00:00:00.000Z', names, points } as unknown as Usage;
}

it('each step has a bar, also without requests, and a bar is the sum of its parts', () => {
  const { series, bars } = barsOf(usageOf(['a', 'b'], [point('a', '3'), point('b', '4')]), 'day');
  expect(series).toEqual(['a', 'b']);
  expect(bars).toEqual([
    { from: DAY, nanos: [3n, 4n], total: 7n },
    { from: '2026-10-02T00:00:00.000Z', nanos: [0n, 0n], total: 0n },
  ]);
});

it('names beyond the eighth are one series with the others, and no nano is lost', () => {
  const names = [...'abcdefghij'];
  const points = [...names.map((name, index) => point(name, String(100 - index))), point(null, '5')];
  const { series, bars } = barsOf(usageOf(names, points), 'day');
  expect(series).toEqual([...'abcdefgh', null]);
  expect(bars[0]!.nanos).toEqual([100n, 99n, 98n, 97n, 96n, 95n, 94n, 93n, 92n + 91n + 5n]);
});

it('usage that is not divided has one series', () => {
  const { series, bars } = barsOf(usageOf([], [point(null, '9007199254740993')]), 'day');
  expect([series, bars[0]!.total]).toEqual([[null], 9_007_199_254_740_993n]);
});

it.each([
  [0n, [0n, 10_000_000n]],
  [1n, [0n, 1n]],
  [7n, [0n, 2n, 4n, 6n, 8n]],
  [20n, [0n, 5n, 10n, 15n, 20n]],
  [1_234_567n, [0n, 500_000n, 1_000_000n, 1_500_000n]],
])('the amounts beside bars of %s nanos are round, and the last is not below them', (total, ticks) => {
  expect(ticksOf([{ from: DAY, nanos: [total], total }])).toEqual(ticks);
});

it.each([
  [1, [0]],
  [30, [2, 7, 12, 17, 22, 27]],
])('the labels of %s bars are apart from the edges', (bars, places) => {
  expect(labelled(bars, 6)).toEqual(places);
});

it.each([
  ['ArrowRight', 3, 4],
  ['ArrowUp', 29, 29],
  ['ArrowLeft', 3, 2],
  ['ArrowDown', 0, 0],
  ['PageUp', 3, 6],
  ['PageDown', 2, 0],
  ['Home', 20, 0],
  ['End', 3, 29],
  ['Tab', 3, null],
])('%s leads from bar %s of 30 to %s', (key, place, next) => {
  expect(placeOf(key, place, 30)).toBe(next);
});
