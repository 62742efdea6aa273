import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { parseFilter } from '../query/parameters';
import { readSteps, stepSql } from '../query/steps';

interface Row {
  at: Date;
  code: string;
  requests: string;
}

/**
 * Answers `metering.refusals.series`. Codes are few and ranges bounded, so the points are, too. RequestError
 * invalid_parameter.
 */
export async function refusalSeries(
  dataSource: DataSource,
  asked: RequestOf<'metering.refusals.series'>,
): Promise<ReplyOf<'metering.refusals.series'>> {
  const [from, to] = readSteps(asked);
  const rows = await query<Row>(
    dataSource,
    `SELECT ${stepSql(asked.step)} AS at, code, sum(requests) AS requests FROM refusal_hour
     WHERE tenant_id = $1 AND hour >= $2 AND hour < $3 AND ($4::text IS NULL OR key_id = $4)
     GROUP BY 1, 2 ORDER BY 1, 2`,
    [asked.tenantId, from, to, parseFilter('keyId', asked.keyId)],
  );
  const points = rows.map(({ at, code, requests }) => ({ at: at.toISOString(), code, requests: Number(requests) }));
  return { from, to, points };
}
