import { MAX_THRESHOLDS, NANOS_PER_CENT } from '@tollgate/contracts';

export const DEFAULT_THRESHOLDS_PERCENT: readonly number[] = [50, 80, 100];

/**
 * The thresholds that this spending has reached. 100 % is reached when the whole budget is spent. A budget of zero has
 * reached all.
 */
export function reachedThresholds(spentNanos: bigint, budgetCents: number, thresholds: readonly number[]): number[] {
  const budgetNanos = BigInt(budgetCents) * NANOS_PER_CENT;
  return thresholds.filter((percent) => spentNanos * 100n >= BigInt(percent) * budgetNanos);
}

/**
 * Whether the value is a list of thresholds: 1 to MAX_THRESHOLDS whole percents from 1 to 100, ascending, without
 * repeats.
 */
export function areThresholds(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length >= 1 &&
    value.length <= MAX_THRESHOLDS &&
    value.every((percent, i) => Number.isInteger(percent) && percent > (i === 0 ? 0 : value[i - 1]) && percent <= 100)
  );
}
