import { Injectable } from '@nestjs/common';
import { MAX_DIGEST_EVENTS, MAX_LISTED_EVENTS, RequestError, type EventRange, type ReplyOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';

/** The first events of a range, by the primary key, whose order is time. `$1`: after. `$2`: until. `$3`: limit. */
const RANGE_SQL = `
  SELECT id, tenant_id, cost_nanos FROM usage_event
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
    const [row] = await query<{ events: string; cost_nanos: string; digest: string; last: string | null }>(
      this.dataSource,
      `SELECT count(*) AS events, coalesce(sum(cost_nanos), 0) AS cost_nanos,
         coalesce(sum(hashtextextended(id, hashtextextended(tenant_id, cost_nanos))), 0) AS digest, max(id) AS last
       FROM (${RANGE_SQL}) e`,
      parameters(range, MAX_DIGEST_EVENTS),
    );
    const events = Number(row!.events);
    const end = events < range.limit ? null : row!.last;
    return { events, costNanos: row!.cost_nanos, digest: row!.digest, end };
  }

  async list(range: EventRange): Promise<ReplyOf<'metering.events.list'>> {
    const rows = await query<{ id: string; tenant_id: string; cost_nanos: string }>(
      this.dataSource,
      RANGE_SQL,
      parameters(range, MAX_LISTED_EVENTS),
    );
    return {
      data: rows.map((row) => ({ id: row.id, tenantId: row.tenant_id, costNanos: row.cost_nanos })),
      end: rows.length < range.limit ? null : rows.at(-1)!.id,
    };
  }
}

function parameters({ after, until, limit }: EventRange, maxLimit: number): unknown[] {
  if (typeof after !== 'string' || !Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw new RequestError('invalid_parameter', `after must be an id, and limit a whole number from 1 to ${maxLimit}.`);
  }
  return [after, until ?? null, limit];
}
