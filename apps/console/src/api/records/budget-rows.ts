import type { BudgetState } from '@tollgate/contracts';
import type { BudgetRow } from '../answers';

/** @param byDefault the budget of the configuration, which applies if none was set */
export function rowOf({ budgetCents, ...state }: BudgetState, byDefault: number | null): BudgetRow {
  const isDefault = budgetCents === 'default';
  const effective = isDefault ? byDefault : budgetCents === 'none' ? null : budgetCents;
  return { ...state, isDefault, budgetCents: effective };
}
