import type { Overview } from '../../apps/console/src/api/answers';
import { burnOf, lastingOf } from '../../apps/console/web/src/burn';

it.each([
  [null, 5n, 'Per day. How long the credit lasts is not known now.'],
  [null, 0n, 'Per day. How long the credit lasts is not known now.'],
  [5n, 0n, 'Per day. Without use, the credit lasts.'],
  [29n, 10n, 'Per day. At this rate the credit lasts 2 days.'],
  [9_999n, 10n, 'Per day. At this rate the credit lasts 999 days.'],
  [10_000n, 10n, 'Per day. At this rate the credit lasts more than 999 days.'],
])('credit of %s nanos, of which %s are used a day, is described so: %s', (left, perDay, text) => {
  expect(lastingOf({ left, perDay })).toBe(text);
});

const NOW = Date.parse('2026-10-20T14:00:00.000Z');

it.each([
  ['no use at all', {}, 0, { perDay: 0n, days: 7 }],
  ['use since today', { '2026-10-20': 10 }, 0, { perDay: 10n, days: 1 }],
  ['use since yesterday', { '2026-10-19': 10, '2026-10-20': 4 }, 0, { perDay: 7n, days: 2 }],
  ['a first use long ago, and a pause', { '2026-10-01': 99, '2026-10-20': 70 }, 0, { perDay: 10n, days: 7 }],
  ['use in the 30 days before, too', { '2026-10-20': 70 }, 1, { perDay: 10n, days: 7 }],
] as const)('%s: the rate is the mean of the days since the first use, at most 7', (_, nanos, requests, rate) => {
  const points = Object.entries(nanos).map(([day, cost]) => ({ at: `${day}T00:00:00.000Z`, costNanos: String(cost) }));
  const data = { usage: { points }, before: { requests } } as unknown as Overview;
  expect(burnOf(data, NOW)).toEqual(rate);
});
