import { hash } from 'node:crypto';
import { jsonText } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';

/** A message that is not a valid charge, and the reason. */
export interface Rejected {
  reason: string;
  data: unknown;
}

/**
 * Quarantines messages for a person to look at, because throwing would redeliver the batch for ever. Reconcile reports
 * the missing charge. A message that was quarantined before for the same reason only counts up. The reason is part of
 * the row's identity, so a changed text makes a new row.
 */
export async function quarantine(tx: EntityManager, rejected: readonly Rejected[]): Promise<void> {
  if (rejected.length === 0) return;
  const rows = new Map<string, { reason: string; text: string; times: number }>();
  for (const { reason, data } of rejected) {
    const text = jsonText(data);
    const digest = hash('sha256', `${reason}\n${text}`, 'hex');
    rows.set(digest, { reason, text, times: (rows.get(digest)?.times ?? 0) + 1 });
  }
  // In the order of the digests, so that two gatherers that count the same rows never deadlock.
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  await query(
    tx,
    `INSERT INTO rejected_charge AS stored (digest, reason, data, times)
     SELECT decode(digest, 'hex'), reason, data, times
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS given (digest, reason, data, times)
     ON CONFLICT (digest) DO UPDATE SET times = stored.times + excluded.times,
       last_at = greatest(stored.last_at, excluded.last_at)`,
    [
      sorted.map(([digest]) => digest),
      sorted.map(([, row]) => row.reason),
      sorted.map(([, row]) => row.text),
      sorted.map(([, row]) => row.times),
    ],
  );
  logger('billing').error(
    { count: rejected.length, reason: rejected[0]?.reason },
    'charges quarantined: see billing.rejected_charge',
  );
}
