import { Injectable } from '@nestjs/common';
import {
  MAX_DIGEST_EVENTS,
  MAX_LISTED_EVENTS,
  RequestError,
  type EventLine,
  type EventRange,
  type ReplyOf,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';

/** The first events of a range, by the primary key, whose order is time. `$1`: after. `$2`: until. `$3`: limit. */
const RANGE_SQL = `
  SELECT id, tenant_id, cost_nanos, key_id, ended_at, overrun_nanos FROM usage_event
  WHERE id > $1 AND ($2::text IS NULL OR id <= $2) ORDER BY id LIMIT $3`;

/** Answers reconcile from the recorded events themselves, not from roll-ups. */
@Injectable()
export class EventRanges {
  constructor(private readonly dataSource: MeteringDataSource) {}

  /**
   * The sums of the events in a range. Billing sums its charges in the same way
   * (apps/billing/src/reconcile/charges.ts).
   */
  async digest(range: EventRange): Promise<ReplyOf<'metering.events.digest'>> {
    const [row] = await query<{
      events: string;
      cost_nanos: string;
      digest: string;
      details_digest: string;
      last: string | null;
    }>(
      this.dataSource,
      `SELECT count(*) AS events, coalesce(sum(cost_nanos), 0) AS cost_nanos,
         coalesce(sum(hashtextextended(id, hashtextextended(tenant_id, cost_nanos))), 0) AS digest,
         coalesce(sum(hashtextextended(id, hashtextextended(key_id, hashint8extended(overrun_nanos,
           (date_part('epoch', ended_at) * 1e6)::bigint)))), 0) AS details_digest,
         max(id) AS last
       FROM (${RANGE_SQL}) e`,
      parameters(range, MAX_DIGEST_EVENTS),
    );
    const { cost_nanos: costNanos, digest, details_digest: detailsDigest, last } = row!;
    const events = Number(row!.events);
    return { events, costNanos, digest, detailsDigest, end: events < range.limit ? null : last };
  }

  async list(range: EventRange): Promise<ReplyOf<'metering.events.list'>> {
    const data = await query<EventLine>(
      this.dataSource,
      `SELECT id, tenant_id AS "tenantId", cost_nanos AS "costNanos", jsonb_build_object(
         'keyId', key_id, 'overrunNanos', overrun_nanos::text,
         'endedAt', to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) AS details
       FROM (${RANGE_SQL}) e ORDER BY id`,
      parameters(range, MAX_LISTED_EVENTS),
    );
    return { data, end: data.length < range.limit ? null : data.at(-1)!.id };
  }
}

function parameters({ after, until, limit }: EventRange, maxLimit: number): unknown[] {
  if (typeof after !== 'string' || !Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw new RequestError('invalid_parameter', `after must be an id, and limit a whole number from 1 to ${maxLimit}.`);
  }
  return [after, until ?? null, limit];
}
