import type { Budget } from '../admission-store';

/** Amounts beyond this are treated as this: no balance reaches it (4 × 10⁹ currency units). As in the Postgres store. */
const MAX_NANOS = 4n * 10n ** 18n;
const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/** An amount as the functions take it (lua/1_amounts.lua): a number where a double has it exactly, digits otherwise. */
export function amount(value: bigint): number | string {
  return value <= MAX_EXACT && value >= -MAX_EXACT ? Number(value) : String(value);
}

export function nanos(value: bigint): number | string {
  return amount(value > MAX_NANOS ? MAX_NANOS : value);
}

/** A budget that the request brings: false for none. */
export function budget(value: bigint | null): number | string | false {
  return value === null ? false : nanos(value);
}

/** Budgets that were set, as `take_budgets` (lua/6_books.lua) reads them. "None at all" is an amount that no spending reaches. */
export function budgetChanges(budgets: readonly Budget[] | undefined): unknown[] {
  return (budgets ?? []).map(({ keyId, version, nanos: set }) => [
    keyId ?? '',
    Number(version),
    set === 'default' ? false : nanos(set === 'none' ? MAX_NANOS : set),
  ]);
}

/** The month of an ISO 8601 UTC instant as the functions count it: year × 12 + month − 1. */
export function monthOf(isoTime: string): number {
  return Number(isoTime.slice(0, 4)) * 12 + Number(isoTime.slice(5, 7)) - 1;
}
