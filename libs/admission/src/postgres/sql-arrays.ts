/** Amounts beyond this are treated as this: no balance reaches it (4 × 10⁹ currency units), and sums of two stay inside a bigint. */
const MAX_NANOS = 4n * 10n ** 18n;

/** More than can be spent: stands for "no budget at all". */
export const UNLIMITED_NANOS = MAX_NANOS;

/** A Postgres array literal of numbers; null elements are NULL. Quicker than node-postgres, which quotes and escapes each element. */
export function numbers<T>(items: readonly T[], of: (item: T) => number | bigint | boolean | null): string {
  let out = '{';
  for (let i = 0; i < items.length; i++) out += (i === 0 ? '' : ',') + (of(items[i]!) ?? 'NULL');
  return out + '}';
}

export function cappedNanos(nanos: bigint): bigint {
  return nanos > MAX_NANOS ? MAX_NANOS : nanos;
}

/** The month of an ISO 8601 UTC instant as the SQL functions count it: year × 12 + month − 1. */
export function monthOf(isoTime: string): number {
  return Number(isoTime.slice(0, 4)) * 12 + Number(isoTime.slice(5, 7)) - 1;
}
