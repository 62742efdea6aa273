import { Injectable } from '@nestjs/common';
import { MAX_DIGEST_EVENTS, type EventDigest, type EventLine } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { BillingDataSource } from '../database';

/** A range of ids: above `after`, up to and including `until`. Null: unbounded. */
export interface IdRange {
  after: string;
  until: string | null;
}

interface DigestRow {
  events: string;
  cost_nanos: string;
  digest: string;
  details_digest: string;
}

/**
 * The same hashes as in metering. If the two databases hashed differently, every range would differ: the comparison
 * would be slow, but not wrong.
 */
const DIGEST = `
  count(*) AS events, coalesce(sum(cost_nanos), 0) AS cost_nanos,
  coalesce(sum(hashtextextended(id, hashtextextended(tenant_id, cost_nanos))), 0) AS digest,
  coalesce(sum(hashtextextended(id, hashtextextended(key_id, hashint8extended(overrun_nanos,
    (date_part('epoch', ended_at) * 1e6)::bigint)))), 0) AS details_digest`;

function digestOf({ events, cost_nanos, digest, details_digest }: DigestRow): Required<Omit<EventDigest, 'end'>> {
  return { events: Number(events), costNanos: cost_nanos, digest, detailsDigest: details_digest };
}

/**
 * Billing's side of the comparison with metering's events (apps/metering/src/audit/event-ranges.ts): the charges by id.
 */
@Injectable()
export class Charges {
  constructor(private readonly dataSource: BillingDataSource) {}

  async digest({ after, until }: IdRange): Promise<Required<Omit<EventDigest, 'end'>>> {
    const [row] = await query<DigestRow>(
      this.dataSource,
      `SELECT ${DIGEST} FROM charge WHERE id > $1 AND ($2::text IS NULL OR id <= $2)`,
      [after, until],
    );
    return digestOf(row!);
  }

  /** The totals of the first MAX_DIGEST_EVENTS charges of a range, and the id at which they end. */
  async part({ after, until }: IdRange): Promise<Required<EventDigest>> {
    const [row] = await query<DigestRow & { last: string | null }>(
      this.dataSource,
      `SELECT ${DIGEST}, max(id) AS last
       FROM (SELECT id, tenant_id, cost_nanos, key_id, ended_at, overrun_nanos FROM charge
             WHERE id > $1 AND ($2::text IS NULL OR id <= $2) ORDER BY id LIMIT $3) c`,
      [after, until, MAX_DIGEST_EVENTS],
    );
    const digest = digestOf(row!);
    return { ...digest, end: digest.events < MAX_DIGEST_EVENTS ? null : row!.last };
  }

  /** The first `limit` charges of a range, ascending. */
  async list({ after, until }: IdRange, limit: number): Promise<EventLine[]> {
    return query<EventLine>(
      this.dataSource,
      `SELECT id, tenant_id AS "tenantId", cost_nanos AS "costNanos", jsonb_build_object(
         'keyId', key_id, 'overrunNanos', overrun_nanos::text,
         'endedAt', to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) AS details
       FROM charge
       WHERE id > $1 AND ($2::text IS NULL OR id <= $2)
       ORDER BY id
       LIMIT $3`,
      [after, until, limit],
    );
  }

  /** The charged ones of these ids, with the milliseconds since they were gathered. */
  async ages(ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await query<{ id: string; age_ms: string }>(
      this.dataSource,
      `SELECT id, (extract(epoch FROM now() - gathered_at) * 1000)::bigint AS age_ms FROM charge WHERE id = ANY($1)`,
      [ids],
    );
    return new Map(rows.map((row) => [row.id, Number(row.age_ms)]));
  }
}
