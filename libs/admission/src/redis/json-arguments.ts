import type {
  Budget,
  ClaimLimits,
  ExtendRequest,
  Limited,
  ParsedBalanceUpdate,
  Progress,
  Settlement,
} from '../admission-store';
import { budgetNanos, cappedNanos, monthOf } from '../amounts';

const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/** An amount for the functions (lua/01_amounts.lua): a number if a double holds it exactly, digits otherwise. */
export function amount(value: bigint): number | string {
  return value <= MAX_EXACT && value >= -MAX_EXACT ? Number(value) : String(value);
}

export function nanos(value: bigint): number | string {
  return amount(cappedNanos(value));
}

/** A budget that the request brings; false for none. */
function budget(value: bigint | null): number | string | false {
  return value === null ? false : nanos(value);
}

/** Budgets of the operator, as `take_budgets` (lua/12_balance_updates.lua) reads them. */
export function budgetChanges(budgets: readonly Budget[] | undefined): unknown[] {
  return (budgets ?? []).map((set) => [set.keyId ?? '', Number(set.version), budget(budgetNanos(set))]);
}

/** What was delivered, as an argument of `progress`. */
function tuple(delivered: Progress['delivered']): (number | string)[] | false {
  if (!delivered) return false;
  const { promptTokens, cachedTokens, completionTokens, costNanos, served } = delivered;
  const amounts = [promptTokens, cachedTokens, completionTokens, nanos(costNanos)];
  // The members of the event, without the braces of their object.
  return served ? [...amounts, JSON.stringify(served).slice(1, -1)] : amounts;
}

/** A heartbeat as an argument of `progress`. */
export function progressValues({ id, delivered, storeEpoch }: Progress): unknown[] {
  return [id, tuple(delivered), storeEpoch ?? false];
}

/** An extension as an argument of `extend`. */
export function extensionValues({ id, wantNanos, minNanos, storeEpoch }: ExtendRequest): (number | string | false)[] {
  return [id, nanos(wantNanos), nanos(minNanos), storeEpoch ?? false];
}

/** A balance update as an argument of `apply_balance_updates`. */
export function balanceUpdateValues(update: ParsedBalanceUpdate): unknown[] {
  const { version, balanceNanos, suspended, releases, budgets } = update;
  return [amount(version), nanos(balanceNanos), suspended, releases, budgetChanges(budgets)];
}

/** A settlement as an argument of `settle`, beside its event. */
function settlementValues({ event, storeEpoch, answer }: Settlement): (number | string | false)[] {
  const tokens = event.promptTokens + event.completionTokens;
  const end: (number | string | false)[] = [
    event.id,
    nanos(BigInt(event.costNanos)),
    tokens,
    monthOf(event.endedAt),
    storeEpoch ?? false,
  ];
  return answer ? [...end, answer.claimId] : end;
}

/** The arguments of `settle` (lua/09_holds.lua). */
export function settleArguments(
  items: readonly Settlement[],
  now: number | '',
  { keepMs, maxAnswerChars }: ClaimLimits,
): (string | number)[] {
  const records = items.map(({ event }) => JSON.stringify(event));
  const args = [now, JSON.stringify(items.map(settlementValues)), ...records];
  if (!items.some(({ answer }) => answer)) return args;
  return [...args, keepMs, maxAnswerChars, ...items.map(({ answer }) => answer?.sealed ?? '')];
}

/** The limits and budgets of a request, as arguments of `admit` and `look`. */
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
