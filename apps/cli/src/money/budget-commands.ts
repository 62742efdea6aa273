import { formatCents, type BudgetState } from '@tollgate/contracts';
import type { Context } from '../command/context';
import { formatNanos } from '../command/money';
import { tenantPath } from '../command/operator-client';
import { table } from '../command/table';

/** A budget as the operator API shows it. */
interface Budget extends Omit<BudgetState, 'budgetCents' | 'hasOwnThresholds'> {
  /** Null if there is none. */
  monthlyBudgetCents: number | null;
  setBy: 'operator' | 'configuration';
  thresholdsSetBy: 'operator' | 'configuration';
  currency: string;
}

export interface BudgetSetOptions {
  key?: string;
  /** Null: the thresholds of the configuration. */
  thresholds?: number[] | null;
}

/** @param budget cents, null for none, or "default" for the one in the configuration */
export async function setBudget(
  { client, output }: Context,
  tenant: string,
  budget: number | null | 'default',
  { key, thresholds }: BudgetSetOptions,
): Promise<void> {
  const body = { monthlyBudgetCents: budget, ...(thresholds !== undefined && { thresholdsPercent: thresholds }) };
  const { data } = await client.put<{ data: Budget }>(path(tenant, key), body);
  output.answer(data, describe(data));
}

/** Shows the budget of one key, or the tenant's with the budgets of its keys. */
export async function showBudget({ client, output }: Context, tenant: string, key?: string): Promise<void> {
  const { data } = await client.get<{ data: Budget }>(path(tenant, key));
  if (key !== undefined) return output.answer(data, describe(data));
  const { rows } = await client.list<Budget>(tenantPath(tenant, '/budgets'));
  const cells = rows.map((row) => [
    row.keyId!,
    amount(row),
    formatNanos(row.spentNanos, row.currency),
    row.thresholdsPercent.join(', '),
  ]);
  const keys = table(['KEY', 'BUDGET', 'SPENT', 'THRESHOLDS %'], cells, 'No key has a budget of its own.');
  output.answer({ ...data, keys: rows }, `${describe(data)}\n\n${keys}`);
}

function path(tenant: string, key: string | undefined): string {
  const base = tenantPath(tenant);
  return key === undefined ? `${base}/budget` : `${base}/keys/${encodeURIComponent(key)}/budget`;
}

function amount({ monthlyBudgetCents, currency }: Budget): string {
  return monthlyBudgetCents === null ? 'none' : formatCents(monthlyBudgetCents, currency);
}

function describe(budget: Budget): string {
  const { setBy, thresholdsPercent, thresholdsSetBy, period, spentNanos, currency, events } = budget;
  const from = (by: Budget['setBy']) => (by === 'configuration' ? ' (tollgate.yaml)' : '');
  return [
    `Monthly budget:    ${amount(budget)}${from(setBy)}`,
    `Spent in ${period}:  ${formatNanos(spentNanos, currency)}`,
    `Thresholds:        ${thresholdsPercent.join(', ')} %${from(thresholdsSetBy)}`,
    ...events.map(
      ({ thresholdPercent, budgetCents, at }) =>
        `Reached:           ${thresholdPercent} % of ${formatCents(budgetCents, currency)} at ${at}`,
    ),
  ].join('\n');
}
