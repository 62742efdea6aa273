/**
 * A Postgres array literal of numbers; null elements are NULL. Quicker than node-postgres, which quotes and escapes
 * each element.
 */
export function numbers<T>(items: readonly T[], of: (item: T) => number | bigint | boolean | null): string {
  let out = '{';
  for (let i = 0; i < items.length; i++) out += (i === 0 ? '' : ',') + (of(items[i]!) ?? 'NULL');
  return out + '}';
}
