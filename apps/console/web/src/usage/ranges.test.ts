import { daysOf, monthOf, monthsUntil, rangeOfDays, rangeOfMonth } from './ranges';

const FEBRUARY = { from: '2024-02-01T00:00:00.000Z', to: '2024-03-01T00:00:00.000Z' };

it('a month is its days in UTC, also a leap one and the last of a year', () => {
  expect(rangeOfMonth('2024-02')).toEqual(FEBRUARY);
  expect(rangeOfMonth('2025-12')).toEqual({ from: '2025-12-01T00:00:00.000Z', to: '2026-01-01T00:00:00.000Z' });
  expect(monthOf(FEBRUARY)).toBe('2024-02');
});

it.each([
  {},
  { from: FEBRUARY.from },
  { to: FEBRUARY.to },
  { from: FEBRUARY.from, to: '2024-02-29T00:00:00.000Z' },
  { from: '2024-02-02T00:00:00.000Z', to: FEBRUARY.to },
  { from: 'yesterday', to: 'today' },
])('%j is no month', (range) => {
  expect(monthOf(range)).toBeUndefined();
});

it('the months to choose from go back a year, over the turn of the year', () => {
  const months = monthsUntil(Date.parse('2026-01-31T23:59:59.000Z'));
  expect([months.length, months[0], months[1], months.at(-1)!.value]).toEqual([
    13,
    { value: '2026-01', label: 'January 2026' },
    { value: '2025-12', label: 'December 2025' },
    '2025-01',
  ]);
});

it('the last day is in the range, and the days of a range are those that were chosen', () => {
  const days = { first: '2026-10-01', last: '2026-10-01' };
  const range = rangeOfDays(days, 400);
  expect(range).toEqual({ from: '2026-10-01T00:00:00.000Z', to: '2026-10-02T00:00:00.000Z' });
  expect(daysOf(range as { from: string; to: string })).toEqual(days);
});

it('hours of the address are shown as their day, and a text that is no time as no day', () => {
  const hour = { from: '2026-10-01T05:00:00.000Z', to: '2026-10-01T06:00:00.000Z' };
  expect(daysOf(hour)).toEqual({ first: '2026-10-01', last: '2026-10-01' });
  expect(daysOf({ from: 'yesterday' })).toEqual({ first: '', last: '' });
});

it('without a bound an end may be open', () => {
  expect(rangeOfDays({ first: '2026-10-01', last: '' })).toEqual({ from: '2026-10-01T00:00:00.000Z', to: undefined });
  expect(rangeOfDays({ first: '', last: '' })).toEqual({ from: undefined, to: undefined });
});

it.each([
  [{ first: '2026-10-02', last: '2026-10-01' }, undefined, 'The first day is after the last.'],
  [{ first: '2026-10-02', last: '' }, 400, 'Choose the first and the last day.'],
  [{ first: '2025-01-01', last: '2026-02-05' }, 400, 'These are 401 days. Choose at most 400.'],
])('%j is refused: %s %s', (days, maxDays, error) => {
  expect(rangeOfDays(days, maxDays)).toEqual({ error });
});
