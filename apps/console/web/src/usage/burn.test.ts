import type { Overview } from '../../../src/api/answers';
import { burnOf, lastingOf } from './burn';

it.each([
  [null, 5n, 'Per day. How long the credit lasts is not known now.'],
  [null, 0n, 'Per day. How long the credit lasts is not known now.'],
  [5n, 0n, 'Per day. Without use, the credit lasts.'],
  [9n, 10n, 'Per day. At this rate the credit lasts less than a day.'],
  [29n, 10n, 'Per day. At this rate the credit lasts 2 days.'],
  [9_999n, 10n, 'Per day. At this rate the credit lasts 999 days.'],
  [10_000n, 10n, 'Per day. At this rate the credit lasts more than 999 days.'],
])('credit of %s nanos, of which %s are used a day, is described so: %s', (left, perDay, text) => {
  expect(lastingOf({ left, perDay })).toBe(text);
});

/** The rate at a time of 2026-10-20. `requests`: in the 30 days before the days of the points. */
function rateAt(time: string, nanos: Record<string, number>, requests = 0) {
  const points = Object.entries(nanos).map(([day, cost]) => ({ at: `${day}T00:00:00.000Z`, costNanos: String(cost) }));
  const data = { usage: { points }, before: { requests } } as unknown as Overview;
  return burnOf(data, Date.parse(`2026-10-20T${time}:00.000Z`));
}

it.each([
  ['no use at all', {}, 0, { perDay: 0n, days: 7 }],
  ['use since today', { '2026-10-20': 10 }, 0, { perDay: 20n, days: 1 }],
  ['use since yesterday', { '2026-10-19': 10, '2026-10-20': 5 }, 0, { perDay: 10n, days: 2 }],
  ['a first use long ago, and a pause', { '2026-10-01': 99, '2026-10-20': 65 }, 0, { perDay: 10n, days: 7 }],
  ['use in the 30 days before, too', { '2026-10-20': 65 }, 1, { perDay: 10n, days: 7 }],
] as const)('%s: the rate at noon is the mean since the first use, at most of 7 days', (_, nanos, requests, rate) => {
  expect(rateAt('12:00', nanos, requests)).toEqual(rate);
});

it.each(['00:00', '00:01', '06:00', '12:00', '23:59'])(
  'an even use has its rate at %s, also while today has hardly begun',
  (time) => {
    const minutes = Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
    const aDay = 24 * 60 * 1_000;
    const before = Array.from({ length: 10 }, (_, day) => [`2026-10-${10 + day}`, aDay] as const);
    const nanos = { ...Object.fromEntries(before), '2026-10-20': minutes * 1_000 };
    expect(rateAt(time, nanos)).toEqual({ perDay: BigInt(aDay), days: 7 });
  },
);

it.each([
  ['00:00', 24n],
  ['00:05', 24n],
  ['01:00', 24n],
  ['02:00', 12n],
])('at %s, a first use of today counts as that of an hour or more', (time, perDay) => {
  expect(rateAt(time, { '2026-10-20': 1 })).toEqual({ perDay, days: 1 });
});
