import { ceilDiv, FEMTOS_PER_NANO } from '@tollgate/contracts';
import type { AdmitRequest, Budget } from './admission-store';

/**
 * The highest amount, and the highest debt. Larger ones are treated as this one (4 × 10⁹ currency units). The sum of
 * two still fits a bigint of SQL: a debt, and what requests hold and owe.
 */
const MAX_NANOS = 4n * 10n ** 18n;

/** More than anyone can spend. Stands for "no budget". */
const UNLIMITED_NANOS = MAX_NANOS;

export function cappedNanos(nanos: bigint): bigint {
  if (nanos < -MAX_NANOS) return -MAX_NANOS;
  return nanos > MAX_NANOS ? MAX_NANOS : nanos;
}

/** The stored form of a budget that the operator set. Null: the configuration's budget is in force. */
export function budgetNanos({ nanos }: Budget): bigint | null {
  if (nanos === 'default') return null;
  return nanos === 'none' ? UNLIMITED_NANOS : cappedNanos(nanos);
}

/** The cost of the whole prompt and of this number of output tokens. */
export function largestCostNanos(request: AdmitRequest, outputTokens: number): bigint {
  const femtos = request.promptFemtos + BigInt(outputTokens) * request.outputFemtosPerToken;
  return cappedNanos(ceilDiv(femtos, FEMTOS_PER_NANO));
}

/** The month of an ISO 8601 instant (UTC) as both stores count it: year × 12 + month − 1. */
export function monthOf(isoTime: string): number {
  return Number(isoTime.slice(0, 4)) * 12 + Number(isoTime.slice(5, 7)) - 1;
}
