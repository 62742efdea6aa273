import type { BudgetNews, CreditNews } from '@tollgate/contracts';
import type { Budget, News } from './admission-store';

/** Billing's news as the store takes it. Throws SyntaxError or TypeError where an amount is none. */
export function readNews({ tenantId, version, balanceNanos, releases, suspended, budgets = [] }: CreditNews): News {
  return {
    tenantId,
    version: BigInt(version),
    balanceNanos: BigInt(balanceNanos),
    releases,
    suspended,
    budgets: budgets.map(readBudget),
  };
}

function readBudget({ keyId, version, budgetNanos }: BudgetNews): Budget {
  const nanos = budgetNanos === 'none' || budgetNanos === 'default' ? budgetNanos : BigInt(budgetNanos);
  return { keyId, version: BigInt(version), nanos };
}
