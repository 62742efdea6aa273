import {
  isId,
  MAX_REFUSAL_COUNTS,
  MAX_REFUSED_IN_REPORT,
  REFUSALS_KEPT_DAYS,
  RequestError,
  type RefusalCount,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { HOUR_MS, isHour } from '../hours';
import { isRefused, keepRefused } from './refused-requests';

const CODE = /^[a-z_]{1,64}$/;
/** A gateway whose clock runs further ahead cannot fill later hours. */
const MAX_AHEAD_MS = HOUR_MS;

/**
 * Answers `metering.refusals.report`. Only greater counts are taken, so reports may be repeated and late. Hours that
 * are no longer kept are ignored, and deleted. RequestError invalid_parameter.
 */
export async function recordRefusals(
  dataSource: DataSource,
  { source, counts, refused = [] }: RequestOf<'metering.refusals.report'>,
): Promise<ReplyOf<'metering.refusals.report'>> {
  const nowMs = Date.now();
  const isReport = isId('msg', source) && Array.isArray(counts) && counts.length <= MAX_REFUSAL_COUNTS;
  if (!isReport || !counts.every((count) => isCount(count, nowMs)))
    throw new RequestError(
      'invalid_parameter',
      `source must be a message id, and counts a list of at most ${MAX_REFUSAL_COUNTS} counts of refused requests.`,
    );
  if (!Array.isArray(refused) || refused.length > MAX_REFUSED_IN_REPORT || !refused.every(isRefused))
    throw new RequestError(
      'invalid_parameter',
      `refused must be a list of at most ${MAX_REFUSED_IN_REPORT} refused requests.`,
    );
  await transaction(dataSource, async (tx) => {
    await query(
      tx,
      `INSERT INTO refusal_hour AS stored (tenant_id, hour, key_id, code, source, requests)
       SELECT tenant_id, hour, key_id, code, $1, max(requests)
       FROM unnest($2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::bigint[])
         AS reported (tenant_id, hour, key_id, code, requests)
       WHERE hour >= now() - make_interval(days => $7)
       GROUP BY tenant_id, hour, key_id, code ORDER BY tenant_id, hour, key_id, code
       ON CONFLICT (tenant_id, hour, key_id, code, source) DO UPDATE SET requests = excluded.requests
       WHERE excluded.requests > stored.requests`,
      [
        source,
        counts.map(({ tenantId }) => tenantId),
        counts.map(({ hour }) => hour),
        counts.map(({ keyId }) => keyId),
        counts.map(({ code }) => code),
        counts.map(({ requests }) => requests),
        REFUSALS_KEPT_DAYS,
      ],
    );
    await keepRefused(tx, refused, nowMs);
    await query(tx, `DELETE FROM refusal_hour WHERE hour < now() - make_interval(days => $1)`, [REFUSALS_KEPT_DAYS]);
  });
  return { recorded: true };
}

function isCount(value: unknown, nowMs: number): value is RefusalCount {
  const { tenantId, keyId, hour, code, requests } = (value ?? {}) as Record<string, unknown>;
  const isOwner = isId('ten', tenantId) && isId('key', keyId);
  const isPast = isHour(hour) && Date.parse(hour) <= nowMs + MAX_AHEAD_MS;
  const isCode = typeof code === 'string' && CODE.test(code);
  return isOwner && isPast && isCode && Number.isSafeInteger(requests) && Number(requests) > 0;
}
