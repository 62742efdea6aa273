import {
  isId,
  MAX_EXPLAINED,
  RequestError,
  type ReplyOf,
  type RequestOf,
  type ServedRequest,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { isCallerRequestId } from '../record/caller-requests';
import type { StoredLife } from '../record/request-life';
import { refusedByName } from '../refusals/refused-requests';
import { EVENT_COLUMNS, recordedEvent, type EventRow } from './recorded-events';

/** How many requests with the same caller-chosen id are searched for the requests of one tenant. */
const MAX_NAMED = 1_000;

interface LifeRow extends EventRow {
  backend: string | null;
  life: string | null;
  rated_at: Date;
}

/**
 * Answers `metering.requests.explain`: served and refused requests by our id, or by the one that callers chose, newest
 * first. RequestError invalid_parameter.
 */
export async function explainRequests(
  dataSource: DataSource,
  { name, tenantId }: RequestOf<'metering.requests.explain'>,
): Promise<ReplyOf<'metering.requests.explain'>> {
  if (!isCallerRequestId(name) || (tenantId !== undefined && !isId('ten', tenantId)))
    throw new RequestError('invalid_parameter', 'name must be the id of a request, and tenantId that of a tenant.');
  const rows = await query<LifeRow>(
    dataSource,
    `SELECT ${EVENT_COLUMNS}, backend, life, rated_at FROM usage_event
     WHERE id = ANY(ARRAY(SELECT $1 UNION
         (SELECT c.id FROM caller_request c WHERE caller_request_id = $1 ORDER BY id DESC LIMIT $2)))
       AND ($3::text IS NULL OR tenant_id = $3)
     ORDER BY id DESC LIMIT $4`,
    [name, MAX_NAMED, tenantId ?? null, MAX_EXPLAINED],
  );
  const refused = await refusedByName(dataSource, name, tenantId ?? null);
  return { served: rows.map((row) => toServed(row, name)), refused };
}

function toServed(row: LifeRow, name: string): ServedRequest {
  const { caller, ...life } = row.life === null ? ({} as Partial<StoredLife>) : (JSON.parse(row.life) as StoredLife);
  return {
    ...recordedEvent(row),
    callerRequestId: caller ?? (name === row.id ? null : name),
    backend: row.backend,
    recordedAt: row.rated_at.toISOString(),
    life: row.life === null ? null : (life as ServedRequest['life']),
  };
}
