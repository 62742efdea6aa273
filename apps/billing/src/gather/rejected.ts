import { hash } from 'node:crypto';
import { jsonText } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';

/** The limit of `openRejected`. */
const MAX_COUNTED = 10_000;
/** A field of the message. The text is not read as JSON, because PostgreSQL does not accept every escape. */
const field = (name: string) => `substring(data FROM '"${name}":"([^"\\\\]+)"')`;

/** Whether an operator has debited the charge `r` by hand. */
const DEBITED = `EXISTS (
  SELECT FROM journal_entry e
  WHERE e.tenant_id = r.tenant_id AND e.source = 'manual' AND e.ref = r.id AND e.type = 'adjustment'
    AND e.amount_cents < 0)`;

/** A message that is not a valid charge, and the reason. */
export interface Rejected {
  reason: string;
  data: unknown;
}

/**
 * Quarantines messages for a person to look at, because throwing would redeliver the batch for ever. Reconcile reports
 * the missing charge. A message that was quarantined before for the same reason only counts up. The reason is part of
 * the row's identity, so a changed text creates a new row.
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

/**
 * Whether each of these charges was quarantined before, and then closed by a person: dismissed, or debited by an
 * adjustment with its id as the `ref`.
 */
export async function closedCharges(
  tx: EntityManager,
  charges: readonly { id: string; tenantId: string }[],
): Promise<(charge: { id: string; tenantId: string }) => boolean> {
  if (charges.length === 0) return () => false;
  const rows = await query<{ id: string; tenant_id: string }>(
    tx,
    `SELECT id, tenant_id FROM (
       SELECT dismissed_at, ${field('id')} AS id, ${field('tenantId')} AS tenant_id FROM rejected_charge
     ) r
     WHERE id = ANY($1) AND (dismissed_at IS NOT NULL OR ${DEBITED})`,
    [charges.map(({ id }) => id)],
  );
  const closed = new Set(rows.map(({ id, tenant_id }) => `${tenant_id} ${id}`));
  return ({ id, tenantId }) => closed.has(`${tenantId} ${id}`);
}

/**
 * The number of quarantined charges that wait for a person, at most MAX_COUNTED. Rows stay for ever. A charge is dealt
 * with when a repeat of it was gathered later, when an operator has debited it by an adjustment with its id as the
 * `ref`, or when it was dismissed (docs/operating/retention.md).
 */
export async function openRejected(on: EntityManager): Promise<number> {
  const [row] = await query<{ open: number }>(
    on,
    `SELECT count(*)::int AS open FROM (
       SELECT FROM (
         SELECT last_at, ${field('id')} AS id, ${field('tenantId')} AS tenant_id FROM rejected_charge
         WHERE dismissed_at IS NULL
       ) r
       WHERE NOT EXISTS (SELECT FROM charge c WHERE c.id = r.id AND c.gathered_at >= r.last_at)
         AND NOT ${DEBITED}
       LIMIT ${MAX_COUNTED}
     ) o`,
  );
  return row!.open;
}
