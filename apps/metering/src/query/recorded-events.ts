import { RequestError, type RecordedEvent, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { isCallerRequestId } from '../record/caller-requests';

const MAX_IDS = 200;
const MAX_NAMED = 100;

/** What a RecordedEvent consists of. */
export const EVENT_COLUMNS = `id, tenant_id, key_id, model, kind, stream, outcome, estimated, prompt_tokens,
  cached_tokens, completion_tokens, reasoning_tokens, cost_nanos, overrun_nanos, price_version, started_at, ended_at`;

/** A row with the columns EVENT_COLUMNS. */
export interface EventRow {
  id: string;
  tenant_id: string;
  key_id: string;
  model: string;
  kind: RecordedEvent['kind'];
  stream: boolean;
  outcome: RecordedEvent['outcome'];
  estimated: boolean;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
  cost_nanos: string;
  overrun_nanos: string;
  price_version: string;
  started_at: Date;
  ended_at: Date;
}

/**
 * Answers `metering.usage.events`: the records of some requests by their ids, in the given order, without unknown ones.
 * RequestError invalid_parameter.
 */
export async function recordedEvents(
  dataSource: DataSource,
  { ids }: RequestOf<'metering.usage.events'>,
): Promise<ReplyOf<'metering.usage.events'>> {
  if (!Array.isArray(ids) || ids.length > MAX_IDS || !ids.every((id) => typeof id === 'string' && !id.includes('\0')))
    throw new RequestError('invalid_parameter', `ids must be a list of at most ${MAX_IDS} request ids.`);
  const rows = await query<EventRow>(dataSource, `SELECT ${EVENT_COLUMNS} FROM usage_event WHERE id = ANY($1)`, [ids]);
  const found = new Map(rows.map((row) => [row.id, recordedEvent(row)]));
  return { data: [...new Set(ids)].flatMap((id) => found.get(id) ?? []) };
}

/**
 * Answers `metering.requests.named`: the newest requests with an id that their callers chose. RequestError
 * invalid_parameter.
 */
export async function namedRequests(
  dataSource: DataSource,
  { callerRequestId }: RequestOf<'metering.requests.named'>,
): Promise<ReplyOf<'metering.requests.named'>> {
  if (!isCallerRequestId(callerRequestId))
    throw new RequestError('invalid_parameter', 'callerRequestId must have 1 to 64 characters from A-Za-z0-9_-.');
  const rows = await query<EventRow>(
    dataSource,
    `SELECT ${EVENT_COLUMNS} FROM usage_event
     WHERE id = ANY(ARRAY(SELECT c.id FROM caller_request c WHERE caller_request_id = $1 ORDER BY id DESC LIMIT $2))
     ORDER BY id DESC`,
    [callerRequestId, MAX_NAMED],
  );
  return { data: rows.map(recordedEvent) };
}

export function recordedEvent(row: EventRow): RecordedEvent {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    keyId: row.key_id,
    model: row.model,
    kind: row.kind,
    stream: row.stream,
    outcome: row.outcome,
    estimated: row.estimated,
    promptTokens: row.prompt_tokens,
    cachedTokens: row.cached_tokens,
    completionTokens: row.completion_tokens,
    reasoningTokens: row.reasoning_tokens,
    costNanos: row.cost_nanos,
    overrunNanos: row.overrun_nanos,
    priceVersion: row.price_version,
    startedAt: row.started_at.toISOString(),
    endedAt: row.ended_at.toISOString(),
  };
}
