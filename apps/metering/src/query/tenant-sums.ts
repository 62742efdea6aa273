import { RequestError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import type { DataSource } from 'typeorm';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 200;

/** Answers `metering.sums`: what reconcile holds against the ledger. */
export class TenantSums {
  constructor(private readonly dataSource: DataSource) {}

  /** Events and charges of each tenant since ever, ascending by tenant id; the running sums, one page one snapshot. RequestError invalid_parameter: limit. */
  async page({ limit = DEFAULT_LIMIT, after = '' }: RequestOf<'metering.sums'>): Promise<ReplyOf<'metering.sums'>> {
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw new RequestError('invalid_parameter', `"limit" is 1 to ${MAX_LIMIT}`);
    }
    const rows: { tenant_id: string; events: string; cost_nanos: string }[] = await this.dataSource.query(
      `SELECT tenant_id, events, cost_nanos FROM tenant_sum WHERE tenant_id > $1 ORDER BY tenant_id LIMIT $2`,
      [after, limit + 1],
    );
    const data = rows
      .slice(0, limit)
      .map((row) => ({ tenantId: row.tenant_id, events: Number(row.events), costNanos: row.cost_nanos }));
    return { data, nextCursor: rows.length > limit ? data.at(-1)!.tenantId : null };
  }
}
