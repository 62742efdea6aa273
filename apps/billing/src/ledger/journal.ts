import type { LedgerEntry } from '@tollgate/contracts';
import { query, queryPrepared } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import type { Entry } from './core/entry';
import type { NumberedCharge } from './core/gather';
import type { ChargeRange } from './core/post';

/**
 * Appends entries with their postings. The database checks them again, and refuses the whole transaction if one does
 * not balance.
 */
export async function insertEntries(tx: EntityManager, entries: readonly Entry[]): Promise<LedgerEntry[]> {
  if (entries.length === 0) return [];
  const rows = await query<{ id: string; created_at: Date }>(
    tx,
    `INSERT INTO journal_entry (id, tenant_id, sequence, type, amount_cents, source, ref, input_hash, period,
       balance_after_cents, reason, created_at)
     SELECT n.*, date_trunc('milliseconds', clock_timestamp())
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[],
       $6::text[], $7::text[], $8::bytea[], $9::text[], $10::bigint[], $11::text[]) AS n
     RETURNING id, created_at`,
    [
      entries.map((entry) => entry.id),
      entries.map((entry) => entry.tenantId),
      entries.map((entry) => String(entry.sequence)),
      entries.map((entry) => entry.type),
      entries.map((entry) => String(entry.amountCents)),
      entries.map((entry) => entry.source),
      entries.map((entry) => entry.ref),
      entries.map((entry) => entry.inputHash),
      entries.map((entry) => entry.period),
      entries.map((entry) => String(entry.balanceAfterCents)),
      entries.map((entry) => entry.reason ?? null),
    ],
  );
  const legs = entries.flatMap((entry) => entry.postings.map((posting) => ({ ...posting, entryId: entry.id })));
  await query(
    tx,
    `INSERT INTO posting (entry_id, account, amount_cents) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])`,
    [legs.map((leg) => leg.entryId), legs.map((leg) => leg.account), legs.map((leg) => String(leg.amountCents))],
  );
  const createdAt = new Map(rows.map((row) => [row.id, row.created_at]));
  return entries.map((entry) => ({
    id: entry.id,
    type: entry.type,
    amountCents: Number(entry.amountCents),
    source: entry.source,
    ref: entry.ref,
    ...(entry.reason !== undefined && { reason: entry.reason }),
    createdAt: createdAt.get(entry.id)!.toISOString(),
  }));
}

/**
 * Appends charge ranges (table `coverage`). The database checks chain, range and sum against the charges themselves.
 * Call it after insertEntries.
 */
export async function insertRanges(tx: EntityManager, ranges: readonly ChargeRange[]): Promise<void> {
  if (ranges.length === 0) return;
  await query(
    tx,
    `INSERT INTO coverage (tenant_id, number, period, from_seq, to_seq, charges_nanos, carried_in_nanos, amount_cents,
       carried_out_nanos, entry_id)
     SELECT *
     FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::numeric[], $7::bigint[],
       $8::bigint[],
       $9::bigint[], $10::text[])`,
    [
      ranges.map((range) => range.tenantId),
      ranges.map((range) => String(range.number)),
      ranges.map((range) => range.period),
      ranges.map((range) => String(range.fromSeq)),
      ranges.map((range) => String(range.toSeq)),
      ranges.map((range) => String(range.chargesNanos)),
      ranges.map((range) => String(range.carriedInNanos)),
      ranges.map((range) => String(range.amountCents)),
      ranges.map((range) => String(range.carriedOutNanos)),
      ranges.map((range) => range.entryId),
    ],
  );
}

/** The end of the first request of each range that has an entry. */
export async function firstEnded(tx: EntityManager, ranges: readonly ChargeRange[]): Promise<Date[]> {
  const debits = ranges.filter((range) => range.entryId !== null);
  if (debits.length === 0) return [];
  const rows = await query<{ ended_at: Date }>(
    tx,
    `SELECT c.ended_at FROM unnest($1::text[], $2::text[], $3::bigint[]) AS d (tenant_id, period, seq)
       JOIN charge c USING (tenant_id, period, seq)`,
    [
      debits.map((range) => range.tenantId),
      debits.map((range) => range.period),
      debits.map((range) => String(range.fromSeq)),
    ],
  );
  return rows.map((row) => row.ended_at);
}

export async function insertCharges(tx: EntityManager, charges: readonly NumberedCharge[]): Promise<void> {
  if (charges.length === 0) return;
  await queryPrepared(
    tx,
    `INSERT INTO charge (id, tenant_id, key_id, cost_nanos, ended_at, period, seq, overrun_nanos)
     SELECT *
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[], $7::bigint[],
       $8::bigint[])`,
    [
      charges.map((charge) => charge.id),
      charges.map((charge) => charge.tenantId),
      charges.map((charge) => charge.keyId),
      charges.map((charge) => String(charge.costNanos)),
      charges.map((charge) => charge.endedAt.toISOString()),
      charges.map((charge) => charge.billedPeriod),
      charges.map((charge) => String(charge.seq)),
      charges.map((charge) => String(charge.overrunNanos ?? 0n)),
    ],
  );
}
