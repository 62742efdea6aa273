import { hash } from 'node:crypto';
import { jsonText } from '@tollgate/contracts';
import type { EntityManager } from 'typeorm';

/** A message that is no usage event, and why. */
export interface Rejected {
  value: unknown;
  reason: string;
}

/** Sets events aside for a person to look at; one that was set aside before (the sweeper sends it again until then) only counts up. */
export async function setAside(tx: EntityManager, rejected: readonly Rejected[]): Promise<void> {
  const rows = new Map<string, { reason: string; text: string; times: number }>();
  for (const { value, reason } of rejected) {
    const text = jsonText(value);
    const digest = hash('sha256', text, 'hex');
    rows.set(digest, { reason, text, times: (rows.get(digest)?.times ?? 0) + 1 });
  }
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  await tx.query(
    `INSERT INTO rejected_event AS stored (digest, reason, event, times)
     SELECT decode(digest, 'hex'), reason, event, times FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS given (digest, reason, event, times)
     ON CONFLICT (digest) DO UPDATE SET times = stored.times + excluded.times, last_at = now(), reason = excluded.reason`,
    [
      sorted.map(([digest]) => digest),
      sorted.map(([, row]) => row.reason),
      sorted.map(([, row]) => row.text),
      sorted.map(([, row]) => row.times),
    ],
  );
}
