import type { Budget, Limited, Progress, Settlement } from '../admission-store';
import { budgetNanos, cappedNanos, monthOf } from '../amounts';

const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/** An amount as the functions take it (lua/1_amounts.lua): a number where a double has it exactly, digits otherwise. */
export function amount(value: bigint): number | string {
  return value <= MAX_EXACT && value >= -MAX_EXACT ? Number(value) : String(value);
}

export function nanos(value: bigint): number | string {
  return amount(cappedNanos(value));
}

/** A budget that the request brings: false for none. */
function budget(value: bigint | null): number | string | false {
  return value === null ? false : nanos(value);
}

/** Budgets that were set, as `take_budgets` (lua/6_books.lua) reads them. */
export function budgetChanges(budgets: readonly Budget[] | undefined): unknown[] {
  return (budgets ?? []).map((set) => [set.keyId ?? '', Number(set.version), budget(budgetNanos(set))]);
}

/** What was delivered, as `progress` takes it. */
export function tuple(delivered: Progress['delivered']): (number | string)[] | false {
  if (!delivered) return false;
  const { promptTokens, cachedTokens, completionTokens, costNanos } = delivered;
  return [promptTokens, cachedTokens, completionTokens, nanos(costNanos)];
}

/** A settlement as `settle` takes it, beside its event. */
export function settlementValues({ event, storeEpoch }: Settlement): (number | string | false)[] {
  const tokens = event.promptTokens + event.completionTokens;
  return [event.id, nanos(BigInt(event.costNanos)), tokens, monthOf(event.endedAt), storeEpoch ?? false];
}

/** The limits and budgets of a request, as `admit` and `look` take them. */
export function limitValues(request: Limited): (number | string | false)[] {
  const { keyLimits, tenantLimits, keyBudgetNanos, tenantBudgetNanos } = request;
  return [
    keyLimits.requestsPerMinute,
    keyLimits.tokensPerMinute,
    keyLimits.concurrency,
    tenantLimits.requestsPerMinute,
    tenantLimits.tokensPerMinute,
    tenantLimits.concurrency,
    budget(keyBudgetNanos),
    budget(tenantBudgetNanos),
  ];
}
