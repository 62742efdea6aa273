import { lastingOf } from '../../apps/console/web/src/burn';

it.each([
  [null, 5n, 'Per day. How long the credit lasts is not known now.'],
  [null, 0n, 'Per day. How long the credit lasts is not known now.'],
  [5n, 0n, 'Per day. Without use, the credit lasts.'],
  [29n, 10n, 'Per day. At this rate the credit lasts 2 days.'],
  [9_999n, 10n, 'Per day. At this rate the credit lasts 999 days.'],
  [10_000n, 10n, 'Per day. At this rate the credit lasts more than 999 days.'],
])('credit of %s nanos, and %s nanos a day: %s', (left, perDay, text) => {
  expect(lastingOf({ left, perDay })).toBe(text);
});
