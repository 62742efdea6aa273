import {
  idBound,
  idTimeMs,
  isId,
  isInstant,
  MAX_EXPLAINED,
  MAX_REFUSED_PER_MINUTE,
  REFUSED_BY,
  REFUSED_KEPT_DAYS,
  REFUSED_PARAM,
  RequestError,
  type RefusedBy,
  type RefusedRequest,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, queryPrepared } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';
import { isCallerRequestId } from '../record/caller-requests';
import { fieldsOf, isCount, isName, isNanos, someAttempts } from '../record/request-life';

const MINUTE_MS = 60_000;
const KEPT_MS = REFUSED_KEPT_DAYS * 24 * 60 * MINUTE_MS;
const CODE = /^[a-z_]{1,64}$/;
const WHAT = new Set<RefusedBy['what']>(REFUSED_BY);

/** The fields of a refused request that have no column. */
type Detail = Pick<RefusedRequest, 'param' | 'by' | 'heldNanos' | 'failed'>;

interface Row {
  id: string;
  tenant_id: string;
  key_id: string;
  caller_request_id: string | null;
  at: Date;
  code: string;
  model: string | null;
  detail: string;
}

const COLUMNS = 'id, tenant_id, key_id, caller_request_id, at, code, model, detail';

/** Whether a gateway may have sent this. Fields for an explanation alone are not checked: they are read one by one. */
export function isRefused(value: unknown): value is RefusedRequest {
  const { id, tenantId, keyId, at, code } = fieldsOf(value);
  const isCode = typeof code === 'string' && CODE.test(code);
  return isId('req', id) && isId('ten', tenantId) && isId('key', keyId) && isInstant(at) && isCode;
}

/**
 * Keeps refused requests, and deletes old ones. At most MAX_REFUSED_PER_MINUTE are kept of the requests that began in
 * one minute, so the table is bounded. Two reports at the same moment may exceed the limit once. A repeat changes
 * nothing.
 */
export async function keepRefused(tx: EntityManager, refused: readonly RefusedRequest[], nowMs: number): Promise<void> {
  const oldest = idBound('req', nowMs - KEPT_MS);
  await query(tx, 'DELETE FROM refused_request WHERE id < $1', [oldest]);
  const newest = idBound('req', nowMs + MINUTE_MS);
  const valid = refused.filter(({ id }) => id >= oldest && id < newest);
  const kept = await withinBounds(tx, valid);
  if (kept.length === 0) return;
  const column = (of: (one: RefusedRequest) => string | null) => kept.map(of);
  await queryPrepared(
    tx,
    `INSERT INTO refused_request (${COLUMNS})
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[],
       $8::text[])
     ON CONFLICT DO NOTHING`,
    [
      column(({ id }) => id),
      column(({ tenantId }) => tenantId),
      column(({ keyId }) => keyId),
      column(({ callerRequestId }) => (isCallerRequestId(callerRequestId) ? callerRequestId : null)),
      column(({ at }) => at),
      column(({ code }) => code),
      column(({ model }) => (isName(model) ? model : null)),
      column((one) => JSON.stringify(detailOf(one))),
    ],
  );
}

/** Those that their minute has room for, without repeats. */
async function withinBounds(tx: EntityManager, refused: readonly RefusedRequest[]): Promise<RefusedRequest[]> {
  const minuteOf = ({ id }: { id: string }) => Math.floor(idTimeMs(id) / MINUTE_MS);
  const minutes = [...new Set(refused.map(minuteOf))];
  if (minutes.length === 0) return [];
  const rows = await query<{ id: string; tenant_id: string }>(
    tx,
    `SELECT r.id, r.tenant_id FROM unnest($1::text[], $2::text[]) AS minute (low, high)
       JOIN refused_request r ON r.id >= minute.low AND r.id < minute.high`,
    [
      minutes.map((minute) => idBound('req', minute * MINUTE_MS)),
      minutes.map((minute) => idBound('req', (minute + 1) * MINUTE_MS)),
    ],
  );
  const known = new Set(rows.map(({ id }) => id));
  const counts = new Map<string, number>();
  const countOf = (name: string) => counts.get(name) ?? 0;
  const count = (minute: number, tenantId: string) => {
    for (const name of [`${minute}`, `${minute} ${tenantId}`]) counts.set(name, countOf(name) + 1);
  };
  for (const row of rows) count(minuteOf(row), row.tenant_id);
  const { all, tenant } = MAX_REFUSED_PER_MINUTE;
  return refused.filter((one) => {
    const minute = minuteOf(one);
    const hasRoom = countOf(`${minute}`) < all && countOf(`${minute} ${one.tenantId}`) < tenant;
    if (!hasRoom || known.has(one.id)) return false;
    known.add(one.id);
    count(minute, one.tenantId);
    return true;
  });
}

/** Made from the known fields alone, so that its length is bounded. */
function detailOf({ param, by, heldNanos, failed }: RefusedRequest): Detail {
  const { what, scope, limit, remaining, needs, until } = fieldsOf(by);
  return {
    ...(typeof param === 'string' && REFUSED_PARAM.test(param) && { param }),
    ...(WHAT.has(what as RefusedBy['what']) && {
      by: {
        what: what as RefusedBy['what'],
        ...((scope === 'key' || scope === 'tenant') && { scope }),
        ...(isCount(limit) && { limit }),
        ...(isCount(remaining) && { remaining }),
        ...(isCount(needs) && { needs }),
        ...(isInstant(until) && { until }),
      },
    }),
    ...(isNanos(heldNanos) && { heldNanos }),
    ...someAttempts(failed),
  };
}

/** By our id, or by the one that the caller chose. Newest first. */
export async function refusedByName(
  dataSource: DataSource,
  name: string,
  tenantId: string | null,
): Promise<RefusedRequest[]> {
  const rows = await query<Row>(
    dataSource,
    `SELECT ${COLUMNS} FROM refused_request
     WHERE (id = $1 OR caller_request_id = $1) AND ($2::text IS NULL OR tenant_id = $2) AND id >= $3
     ORDER BY id DESC LIMIT $4`,
    [name, tenantId, idBound('req', Date.now() - KEPT_MS), MAX_EXPLAINED],
  );
  return rows.map(toRefused);
}

/** Answers `metering.refusals.newest`. RequestError invalid_parameter. */
export async function newestRefused(
  dataSource: DataSource,
  { keyId }: RequestOf<'metering.refusals.newest'>,
): Promise<ReplyOf<'metering.refusals.newest'>> {
  if (!isId('key', keyId)) throw new RequestError('invalid_parameter', 'keyId must be the id of a key.');
  const rows = await query<Row>(
    dataSource,
    `SELECT ${COLUMNS} FROM refused_request WHERE key_id = $1 AND id >= $2 ORDER BY id DESC LIMIT $3`,
    [keyId, idBound('req', Date.now() - KEPT_MS), MAX_EXPLAINED],
  );
  return { refused: rows.map(toRefused) };
}

function toRefused(row: Row): RefusedRequest {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    keyId: row.key_id,
    ...(row.caller_request_id !== null && { callerRequestId: row.caller_request_id }),
    at: row.at.toISOString(),
    code: row.code,
    ...(row.model !== null && { model: row.model }),
    ...(JSON.parse(row.detail) as Detail),
  };
}
