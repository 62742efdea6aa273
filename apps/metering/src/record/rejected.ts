import { hash } from 'node:crypto';
import {
  isId,
  jsonText,
  MAX_NAMED_OF_PART,
  named,
  type Difference,
  type Found,
  type UsageEvent,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';
import type { Wrong } from '../consume/metrics';

/** The limit of `openRejected`. */
const MAX_COUNTED = 10_000;
const AGAIN_PAGE = 500;
/** Neither dismissed nor recorded since. */
const OPEN = `r.dismissed_at IS NULL AND NOT EXISTS (SELECT FROM usage_event e WHERE e.id = r.event_id)`;

/** A message that is not a valid usage event, or that is not charged, and the reason. */
export interface Rejected {
  value: unknown;
  reason: string;
  wrong: Wrong;
  /** For an event whose price is unknown. */
  priceVersion?: string;
}

/**
 * Quarantines events for a person to look at. An event that was quarantined before only counts up. The sweeper
 * redelivers it until it is recorded or dismissed.
 */
export async function quarantine(tx: EntityManager, rejected: readonly Rejected[]): Promise<void> {
  const rows = new Map<string, Rejected & { text: string; times: number }>();
  for (const one of rejected) {
    const text = jsonText(one.value);
    const digest = hash('sha256', text, 'hex');
    rows.set(digest, { ...one, text, times: (rows.get(digest)?.times ?? 0) + 1 });
  }
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  await query(
    tx,
    `INSERT INTO rejected_event AS stored (digest, reason, event, times, event_id, tenant_id, price_version)
     SELECT decode(digest, 'hex'), reason, event, times, event_id, tenant_id, price_version
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])
       AS given (digest, reason, event, times, event_id, tenant_id, price_version)
     ON CONFLICT (digest) DO UPDATE SET times = stored.times + excluded.times, last_at = now(),
       reason = excluded.reason, price_version = excluded.price_version`,
    [
      sorted.map(([digest]) => digest),
      sorted.map(([, row]) => row.reason),
      sorted.map(([, row]) => row.text),
      sorted.map(([, row]) => row.times),
      sorted.map(([, { value }]) => eventId(value) ?? null),
      sorted.map(([, { value }]) => tenantOf(value) ?? null),
      sorted.map(([, row]) => row.priceVersion ?? null),
    ],
  );
}

/** The request id in a rejected message, if it has one. */
export function eventId(value: unknown): string | undefined {
  return idIn(value, 'id', 'req');
}

/** The tenant id in a rejected message, if it has one. */
export function tenantOf(value: unknown): string | undefined {
  return idIn(value, 'tenantId', 'ten');
}

function idIn(value: unknown, name: keyof UsageEvent, prefix: 'req' | 'ten'): string | undefined {
  const id = (value as Partial<Record<keyof UsageEvent, unknown>> | null | undefined)?.[name];
  return isId(prefix, id) ? id : undefined;
}

/** Yields the events that wait for one of these prices, in parts, each once. */
export async function* waitingFor(dataSource: DataSource, versions: readonly string[]): AsyncGenerator<unknown[]> {
  for (let after = '', last = false; !last;) {
    const rows = await query<{ digest: string; event: string }>(
      dataSource,
      `SELECT encode(digest, 'hex') AS digest, event FROM rejected_event r
       WHERE price_version = ANY($1) AND digest > decode($2, 'hex') AND ${OPEN} ORDER BY r.digest LIMIT $3`,
      [versions, after, AGAIN_PAGE],
    );
    if (rows.length > 0) yield rows.map(({ event }): unknown => JSON.parse(event));
    last = rows.length < AGAIN_PAGE;
    after = rows.at(-1)?.digest ?? '';
  }
}

/** The number of events that wait for a person or for their price, at most MAX_COUNTED. */
export async function openRejected(dataSource: DataSource): Promise<number> {
  const [row] = await query<{ open: number }>(
    dataSource,
    `SELECT count(*)::int AS open FROM (SELECT FROM rejected_event r WHERE ${OPEN} LIMIT ${MAX_COUNTED}) o`,
  );
  return row!.open;
}

/** The same for reconcile: their requests may have been served, but are in no books. */
export async function auditRejected(dataSource: DataSource): Promise<Found> {
  const rows = await query<{ event_id: string | null; tenant_id: string | null; reason: string; times: string }>(
    dataSource,
    `SELECT event_id, tenant_id, reason, times
     FROM rejected_event r
     WHERE ${OPEN}
     ORDER BY first_at, digest
     LIMIT ${MAX_NAMED_OF_PART + 1}`,
  );
  return named(
    rows.map(({ event_id, tenant_id, reason, times }): Difference => ({
      check: 'no usage event is quarantined',
      tenantId: tenant_id ?? '',
      expected: 'recorded, or dismissed by a person',
      actual: `quarantined ${times} times: ${reason}`,
      ids: event_id === null ? [] : [event_id],
    })),
  );
}
