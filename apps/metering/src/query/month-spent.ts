import { RequestError, toPage, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { daysOfKeysAlone } from './whole-hours';

/** About 350 KB of reply. */
const MAX_KEYS_PER_PAGE = 5_000;
/** By the day where days are folded: a key that is busy all month has 30 rows of them, and 720 of hours. */
const SPENT = daysOfKeysAlone({ tenant: '$1', from: '$2', to: '$3', firstDay: '$2', endOfDays: '$3' }, 'true').amounts;
const MONTH = /^2\d{3}-(0[1-9]|1[0-2])$/;

interface SpentRow {
  key_id: string;
  nanos: string;
  total: string;
}

/** Answers `metering.spent`: the month's spending that budgets count, for an admission store that lost it. */
export class MonthSpent {
  constructor(
    private readonly dataSource: DataSource,
    private readonly maxKeysPerPage = MAX_KEYS_PER_PAGE,
  ) {}

  /** One page, read at one instant. RequestError invalid_parameter (month). */
  async page({ tenantId, month, after = '' }: RequestOf<'metering.spent'>): Promise<ReplyOf<'metering.spent'>> {
    if (typeof month !== 'string' || !MONTH.test(month))
      throw new RequestError('invalid_parameter', 'month must be in the form YYYY-MM.');
    const rows = await query<SpentRow>(
      this.dataSource,
      `SELECT * FROM (
         SELECT key_id, sum(cost_nanos)::text AS nanos, (sum(sum(cost_nanos)) OVER ())::text AS total
         FROM ${SPENT} AS days GROUP BY key_id) AS spent
       WHERE key_id > $4 ORDER BY key_id LIMIT $5`,
      [tenantId, ...boundsOf(month), after, this.maxKeysPerPage + 1],
    );
    const read = rows.map(({ key_id, nanos }) => ({ keyId: key_id, nanos }));
    const { data: keys, nextCursor } = toPage(read, this.maxKeysPerPage, ({ keyId }) => keyId);
    return { tenantNanos: rows[0]?.total ?? '0', keys, nextCursor };
  }
}

/** The first instant of the month, and of the next. */
function boundsOf(month: string): [string, string] {
  const start = new Date(`${month}-01T00:00:00Z`);
  const end = new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1));
  return [start.toISOString(), end.toISOString()];
}
