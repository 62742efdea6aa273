import type { ExportedUsage } from '@tollgate/contracts';

const DAY_CHARS = 10;
const DAY_MS = 86_400_000;
const SUMS = [
  ...(['requests', 'failed', 'clientClosed', 'estimated'] as const),
  ...(['promptTokens', 'cachedTokens', 'completionTokens', 'reasoningTokens'] as const),
];

/**
 * Sums hours up to days (UTC). The hours of a tenant come together and in their order, so only one day of one tenant is
 * in memory: a row for each of its models and keys.
 */
export async function* daysOf(pages: AsyncIterable<ExportedUsage[]>): AsyncGenerator<ExportedUsage[]> {
  let day = '';
  let sums = new Map<string, ExportedUsage>();
  for await (const page of pages) {
    for (const row of page) {
      const of = `${row.tenantId} ${row.from.slice(0, DAY_CHARS)}`;
      if (of !== day && sums.size > 0) {
        yield [...sums.values()];
        sums = new Map();
      }
      day = of;
      const name = `${row.keyId} ${row.model}`;
      const sum = sums.get(name);
      sums.set(name, sum ? added(sum, row) : inDay(row));
    }
  }
  if (sums.size > 0) yield [...sums.values()];
}

function inDay(row: ExportedUsage): ExportedUsage {
  const fromMs = Date.parse(row.from.slice(0, DAY_CHARS));
  return { ...row, from: new Date(fromMs).toISOString(), to: new Date(fromMs + DAY_MS).toISOString() };
}

function added(sum: ExportedUsage, row: ExportedUsage): ExportedUsage {
  const next = { ...sum, costNanos: String(BigInt(sum.costNanos) + BigInt(row.costNanos)) };
  for (const field of SUMS) next[field] += row[field];
  return next;
}
