import { spentOf } from './budget-share';

const CENT = 10_000_000n;

it.each([
  ['nothing', 0n, 100, 0, '0 % of the budget is spent'],
  ['a part', 33n * CENT, 100, 33, '33 % of the budget is spent'],
  ['more than all', 250n * CENT, 100, 250, '250 % of the budget is spent'],
  ['nothing of zero', 0n, 0, 100, 'The budget is zero, so nothing may be spent'],
  ['something of zero', 5n, 0, 100, 'The budget is zero, so nothing may be spent'],
])('the bar of a budget of which %s is spent', (_, nanos, budgetCents, percent, label) => {
  expect(spentOf(nanos, budgetCents)).toEqual({ percent, label });
});
