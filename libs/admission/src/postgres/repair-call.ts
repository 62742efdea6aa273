import type { Repair } from '../admission-store';
import { budgetNanos, cappedNanos, monthOf } from '../amounts';
import { numbers } from './sql-arrays';

/** The call of functions/repair.sql. */
export function repairCall(repair: Repair, nowMs: unknown) {
  const { tenantId, version, balanceNanos, suspended, spent, budgets, releases } = repair;
  const spending = spent.flatMap(({ month, tenantNanos, keys }) =>
    [{ keyId: '', nanos: tenantNanos }, ...keys].map((one) => ({ ...one, month: monthOf(month) })),
  );
  return {
    name: 'repair',
    text: 'SELECT repair($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) AS repaired',
    values: [
      nowMs,
      tenantId,
      String(version),
      String(cappedNanos(balanceNanos)),
      suspended,
      numbers(spending, ({ month }) => month),
      spending.map(({ keyId }) => keyId),
      numbers(spending, ({ nanos }) => cappedNanos(nanos)),
      budgets.map(({ keyId }) => keyId ?? ''),
      numbers(budgets, (budget) => budget.version),
      numbers(budgets, budgetNanos),
      releases,
    ],
  };
}
