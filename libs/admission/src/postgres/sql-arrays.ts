/**
 * A PostgreSQL array literal of numbers; null elements become NULL. Faster than node-postgres, which quotes and escapes
 * every element.
 */
export function numbers<T>(items: readonly T[], of: (item: T) => number | bigint | boolean | null): string {
  let out = '{';
  for (let i = 0; i < items.length; i++) out += (i === 0 ? '' : ',') + (of(items[i]!) ?? 'NULL');
  return out + '}';
}
