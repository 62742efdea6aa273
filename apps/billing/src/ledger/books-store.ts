import { NANOS_PER_CENT } from '@tollgate/contracts';
import { query, queryPrepared } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { canPost, mayPostPart, type Books, type Month } from './core/books';
import type { Calendar } from './core/gather';
import type { Part } from './core/post';

interface BooksRow {
  tenant_id: string;
  version: string;
  balance_cents: string;
  last_sequence: string;
  last_cover: string;
  carried_nanos: string;
  gathered_nanos: string;
  overrun_nanos: string;
  suspended: boolean;
}

interface MonthRow {
  tenant_id: string;
  period: string;
  last_seq: string;
  covered_seq: string;
  gathered_nanos: string;
  debited_cents: string;
  closed: boolean;
}

const BOOKS_COLUMNS =
  'tenant_id, version, balance_cents, last_sequence, last_cover, carried_nanos, gathered_nanos, overrun_nanos, ' +
  'suspended';
const MONTH_COLUMNS = 'tenant_id, period, last_seq, covered_seq, gathered_nanos, debited_cents';
const SELECT_MONTHS = `SELECT ${MONTH_COLUMNS}, closed_at IS NOT NULL AS closed FROM tenant_month m`;

/**
 * Locks the books of tenants until the transaction ends, and returns them. First it inserts missing rows with zeros,
 * then it takes the locks, both in the order of the ids, so that transactions never deadlock. Everything of a tenant
 * changes only under this lock.
 */
export async function lockBooks(tx: EntityManager, tenantIds: Iterable<string>): Promise<Map<string, Books>> {
  const ids = [...new Set(tenantIds)];
  await queryPrepared(
    tx,
    `INSERT INTO tenant_books (tenant_id)
     SELECT id
     FROM unnest($1::text[]) AS id
     ORDER BY id COLLATE "C"
     ON CONFLICT DO NOTHING`,
    [ids],
  );
  return booksByTenant(
    await queryPrepared<BooksRow>(
      tx,
      `SELECT ${BOOKS_COLUMNS} FROM tenant_books WHERE tenant_id = ANY($1) ORDER BY tenant_id FOR UPDATE`,
      [ids],
    ),
  );
}

/** The current books, without a lock; null if there are none. */
export async function readBooks(tx: EntityManager, tenantId: string): Promise<Books | null> {
  const rows = await query<BooksRow>(tx, `SELECT ${BOOKS_COLUMNS} FROM tenant_books WHERE tenant_id = $1`, [tenantId]);
  return booksByTenant(rows).get(tenantId) ?? null;
}

export interface DueBooks {
  limit: number;
  /** Includes books that are not due yet. */
  early: boolean;
  /** Only this tenant, if it is due. */
  only?: string | null;
}

/** The longest deferral of a posting. A later `due_at` is from a clock that was ahead: the posting is due at once. */
const MAX_DEFERRED_MINUTES = 5;

const DUE = `
  (due_at <= CASE WHEN $2 THEN 'infinity' ELSE now() END OR due_at > now() + interval '${MAX_DEFERRED_MINUTES} minutes')
  AND ($3::text IS NULL OR tenant_id = $3)
  ORDER BY due_at
  LIMIT $1`;

/** Locks the books that are due, longest due first. Skips those that another replica has locked, so it never waits. */
export async function lockDueBooks(
  tx: EntityManager,
  { limit, early, only = null }: DueBooks,
): Promise<Map<string, Books>> {
  return booksByTenant(
    await query<BooksRow>(tx, `SELECT ${BOOKS_COLUMNS} FROM tenant_books WHERE ${DUE} FOR UPDATE SKIP LOCKED`, [
      limit,
      early,
      only,
    ]),
  );
}

/** How long the oldest due posting has been due, in seconds; 0 if none is. */
export async function overdueSeconds(tx: EntityManager): Promise<number> {
  const [row] = await query<{ seconds: number | null }>(
    tx,
    'SELECT extract(epoch FROM now() - min(due_at))::float8 AS seconds FROM tenant_books WHERE due_at IS NOT NULL',
  );
  return Math.max(0, row?.seconds ?? 0);
}

/**
 * The longest run of a month's first uncovered charges whose sum is at most this amount; null if even the first is
 * above it. Call it under the tenant's lock.
 */
export async function coveredPart(
  tx: EntityManager,
  { month, limitNanos }: { month: Month; limitNanos: bigint },
): Promise<Part | null> {
  const { tenantId, period, coveredSeq } = month;
  const [row] = await query<{ seq: string; nanos: string }>(
    tx,
    `SELECT seq, nanos FROM (
       SELECT seq, sum(cost_nanos) OVER (ORDER BY seq) AS nanos
       FROM charge
       WHERE tenant_id = $1 AND period = $2 AND seq > $3) c
     WHERE nanos <= $4 ORDER BY seq DESC LIMIT 1`,
    [tenantId, period, String(coveredSeq), String(limitNanos)],
  );
  return row ? { period, toSeq: BigInt(row.seq), nanos: BigInt(row.nanos) } : null;
}

/** Age of the oldest usage that waits for credit, in seconds since its request ended; 0 if none waits. */
export async function uncoveredSeconds(tx: EntityManager): Promise<number> {
  const [row] = await query<{ seconds: number | null }>(
    tx,
    `SELECT extract(epoch FROM now() - min(c.ended_at))::float8 AS seconds
     FROM tenant_month m JOIN tenant_books b USING (tenant_id)
       JOIN charge c ON c.tenant_id = m.tenant_id AND c.period = m.period AND c.seq = m.covered_seq + 1
     WHERE m.covered_seq < m.last_seq
       AND b.carried_nanos + b.gathered_nanos >= (b.balance_cents + 1)::numeric * ${NANOS_PER_CENT}
       AND b.carried_nanos + b.gathered_nanos >= ${NANOS_PER_CENT}`,
  );
  return Math.max(0, row?.seconds ?? 0);
}

/** The tenants that are due, without a lock. */
export async function dueTenants(tx: EntityManager, { limit, early, only = null }: DueBooks): Promise<string[]> {
  const rows = await query<{ tenant_id: string }>(tx, `SELECT tenant_id FROM tenant_books WHERE ${DUE}`, [
    limit,
    early,
    only,
  ]);
  return rows.map((row) => row.tenant_id);
}

/** Defers the posting of a tenant whose books refuse it. */
export async function deferPosting(tx: EntityManager, tenantId: string, ms: number): Promise<void> {
  await query(
    tx,
    `UPDATE tenant_books
     SET due_at = clock_timestamp() + $2 * interval '1 millisecond'
     WHERE tenant_id = $1 AND due_at IS NOT NULL`,
    [tenantId, ms],
  );
}

/**
 * Writes changed books back and decides when they are due: at once, or `postingIntervalMs` after the tenant's last
 * posting. Never later than that from now: the clock may have been ahead at the last posting.
 * @returns milliseconds until the first of them is due; null if none is
 */
export async function saveBooks(
  tx: EntityManager,
  changed: readonly Books[],
  { postingIntervalMs, posted = false }: { postingIntervalMs: number; posted?: boolean },
): Promise<number | null> {
  if (changed.length === 0) return null;
  const rows = await queryPrepared<{ due_in_ms: number | null }>(
    tx,
    `UPDATE tenant_books b
     SET version = n.version, balance_cents = n.balance_cents,
         last_sequence = n.last_sequence, last_cover = n.last_cover,
         carried_nanos = n.carried_nanos, gathered_nanos = n.gathered_nanos,
         overrun_nanos = n.overrun_nanos, suspended = n.suspended,
         last_posted_at = CASE WHEN $11 THEN clock_timestamp() ELSE b.last_posted_at END,
         due_at = CASE WHEN n.can_post THEN coalesce(b.due_at, least(
           greatest(clock_timestamp(), b.last_posted_at + $12 * interval '1 millisecond'),
           clock_timestamp() + $12 * interval '1 millisecond')) END
     FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::numeric[],
       $8::numeric[], $9::boolean[], $10::boolean[])
       AS n (tenant_id, version, balance_cents, last_sequence, last_cover, carried_nanos, gathered_nanos, overrun_nanos,
         suspended, can_post)
     WHERE b.tenant_id = n.tenant_id
     RETURNING extract(epoch FROM b.due_at - clock_timestamp())::float8 * 1000 AS due_in_ms`,
    [
      changed.map((books) => books.tenantId),
      changed.map((books) => String(books.version)),
      changed.map((books) => String(books.balanceCents)),
      changed.map((books) => String(books.lastSequence)),
      changed.map((books) => String(books.lastCover)),
      changed.map((books) => String(books.carriedNanos)),
      changed.map((books) => String(books.gatheredNanos)),
      changed.map((books) => String(books.overrunNanos)),
      changed.map((books) => books.suspended),
      // If more has gathered than the balance pays for, the affordable part has been posted by then. The next change is
      // another chance.
      changed.map((books) => canPost(books) || (!posted && mayPostPart(books))),
      posted,
      postingIntervalMs,
    ],
  );
  const due = rows.flatMap((row) => (row.due_in_ms === null ? [] : [Math.max(0, row.due_in_ms)]));
  return due.length === 0 ? null : Math.min(...due);
}

/** Each tenant's existing months, from the month of its oldest charge on. Call it under the tenants' locks. */
export async function loadMonths(
  tx: EntityManager,
  charges: readonly { tenantId: string; ownPeriod: string }[],
): Promise<Pick<Calendar, 'closedThrough'> & { months: Month[] }> {
  const rows = await queryPrepared<(MonthRow | { tenant_id: null }) & { closed_through: string }>(
    tx,
    `SELECT c.closed_through, found.*
     FROM invoice_counter c LEFT JOIN (
       ${SELECT_MONTHS} JOIN (
         SELECT tenant_id AS id, min(period COLLATE "C") AS oldest
         FROM unnest($1::text[], $2::text[]) AS w (tenant_id, period) GROUP BY 1
       ) w ON m.tenant_id = w.id AND m.period >= w.oldest
     ) found ON true`,
    [charges.map((charge) => charge.tenantId), charges.map((charge) => charge.ownPeriod)],
  );
  const months = rows.flatMap((row) => (row.tenant_id === null ? [] : [month(row)]));
  return { months, closedThrough: rows[0]!.closed_through };
}

/** All months of these tenants with uncovered charges. Call it under the tenants' locks. */
export async function loadUncoveredMonths(tx: EntityManager, tenantIds: Iterable<string>): Promise<Month[]> {
  const rows = await query<MonthRow>(tx, `${SELECT_MONTHS} WHERE tenant_id = ANY($1) AND covered_seq < last_seq`, [
    [...tenantIds],
  ]);
  return rows.map(month);
}

/** All open months of these tenants. Call it under the tenants' locks. */
export async function loadOpenMonths(tx: EntityManager, tenantIds: Iterable<string>): Promise<Month[]> {
  const rows = await query<MonthRow>(
    tx,
    `${SELECT_MONTHS} WHERE tenant_id = ANY($1) AND closed_at IS NULL ORDER BY tenant_id, period`,
    [[...tenantIds]],
  );
  return rows.map(month);
}

export async function saveMonths(tx: EntityManager, months: readonly Month[]): Promise<void> {
  if (months.length === 0) return;
  await queryPrepared(
    tx,
    `INSERT INTO tenant_month (${MONTH_COLUMNS})
     SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::numeric[], $6::bigint[])
     ON CONFLICT (tenant_id, period) DO UPDATE SET last_seq = EXCLUDED.last_seq, covered_seq = EXCLUDED.covered_seq,
       gathered_nanos = EXCLUDED.gathered_nanos, debited_cents = EXCLUDED.debited_cents`,
    [
      months.map((month) => month.tenantId),
      months.map((month) => month.period),
      months.map((month) => String(month.lastSeq)),
      months.map((month) => String(month.coveredSeq)),
      months.map((month) => String(month.gatheredNanos)),
      months.map((month) => String(month.debitedCents)),
    ],
  );
}

function booksByTenant(rows: readonly BooksRow[]): Map<string, Books> {
  return new Map(
    rows.map((row) => [
      row.tenant_id,
      {
        tenantId: row.tenant_id,
        version: BigInt(row.version),
        balanceCents: BigInt(row.balance_cents),
        lastSequence: BigInt(row.last_sequence),
        lastCover: BigInt(row.last_cover),
        carriedNanos: BigInt(row.carried_nanos),
        gatheredNanos: BigInt(row.gathered_nanos),
        overrunNanos: BigInt(row.overrun_nanos),
        suspended: row.suspended,
      },
    ]),
  );
}

function month(row: MonthRow): Month {
  return {
    tenantId: row.tenant_id,
    period: row.period,
    lastSeq: BigInt(row.last_seq),
    coveredSeq: BigInt(row.covered_seq),
    gatheredNanos: BigInt(row.gathered_nanos),
    debitedCents: BigInt(row.debited_cents),
    closed: row.closed,
  };
}
