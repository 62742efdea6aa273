import { Injectable } from '@nestjs/common';
import {
  isId,
  pageRows,
  RequestError,
  toPage,
  type Outcome,
  type Page,
  type ListedRequest,
  type RequestsQuery,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { MeteringDataSource } from '../database';
import { HOUR_MS, hourOf } from '../hours';
import { isCallerRequestId } from '../record/caller-requests';
import { checkKept } from '../retain/kept-from';
import { byIndex } from './by-index';
import { iso, parseFilter, parseTime } from './parameters';
import { EVENT_COLUMNS, recordedEvent, type EventRow } from './recorded-events';
import { hoursOfKeys, hoursOfModels } from './whole-hours';

/** Requests of all tenants with the same id of their callers that are searched, the newest ones. */
const MAX_NAMED = 1_000;
/**
 * The work of one page of a search: the hours that it may search, and the time after which it searches no further hour.
 * It searches at least one, so that every page makes progress.
 */
const MAX_SEARCH = { hours: 200, ms: 150 };
/** The times of PostgreSQL and Date have more years; these are enough for a page without bounds. */
const BEGINNING_MS = Date.UTC(2000, 0);
const END_MS = Date.UTC(2200, 0);
/** The outcomes of the index usage_event_unfinished, and the one that is not in it. */
const OUTCOMES: Record<Outcome, boolean> = {
  complete: false,
  client_closed: true,
  upstream_error: true,
  credit_ended: true,
  expired: true,
};
const CURSOR = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)~(\w*)$/;

/** A place in the order of the list: the page goes on below the request of this id that ended at this time. */
interface Place {
  ms: number;
  /** Empty: below all requests of this time. */
  id: string;
}

interface Search {
  tenantId: string;
  fromMs: number;
  below: Place;
  model: string | null;
  keyId: string | null;
  outcome: Outcome | null;
  callerRequestId: string | null;
  limit: number;
}

interface ListedRow extends EventRow {
  first_ms: number | null;
}

interface Found {
  rows: ListedRow[];
  /** The search has not looked below this time. Null: it looked everywhere. */
  untilMs: number | null;
}

/**
 * Answers `metering.requests.list` from the index of tenant and end, which every page reads from its cursor on.
 *
 * No index has the model or the key: each would cost the recording of every event. The rollups know in which hours a
 * key or a model was used, so a search reads only these hours. Requests that did not end normally have an index of
 * their own (migrations/006_unfinished.sql). So have the ids that callers chose (migrations/008_caller_requests.sql).
 */
@Injectable()
export class RequestsList {
  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly maxSearch = MAX_SEARCH,
  ) {}

  /** RequestError invalid_parameter, also for a range that lies before the kept events. */
  async page(asked: RequestsQuery): Promise<Page<ListedRequest>> {
    const search = readSearch(asked);
    const { rows, untilMs } = await byIndex(this.dataSource, (tx) => this.find(tx, search));
    const listed = rows.map((row): ListedRequest => ({ ...recordedEvent(row), firstMs: row.first_ms }));
    const page = toPage(listed, search.limit, ({ endedAt, id }) => `${endedAt}~${id}`);
    // Checked after the search, so that a month that was dropped meanwhile is noticed.
    if (asked.to !== undefined && rows.length === 0 && untilMs === null)
      await checkKept(
        this.dataSource,
        [parseTime('to', asked.to) - 1],
        'Ask for usage instead: its sums by the hour are kept.',
      );
    if (page.nextCursor !== null || untilMs === null) return page;
    return { ...page, nextCursor: `${new Date(untilMs).toISOString()}~` };
  }

  private async find(tx: EntityManager, search: Search): Promise<Found> {
    const { fromMs, below, model, keyId, outcome, callerRequestId } = search;
    const isInHours = outcome !== null || model !== null || keyId !== null;
    if (isInHours && callerRequestId === null) return this.searchHours(tx, search);
    return { rows: await read(tx, search, [fromMs, below.ms + 1], search.limit + 1), untilMs: null };
  }

  /** Searches the hours in which the rollups name the model and the key, if these are asked for, newest first. */
  private async searchHours(tx: EntityManager, search: Search): Promise<Found> {
    const startedMs = performance.now();
    const hours = await hoursOf(tx, search, this.maxSearch.hours);
    const rows: ListedRow[] = [];
    for (const [index, startMs] of hours.entries()) {
      if (index > 0 && performance.now() - startedMs >= this.maxSearch.ms) return { rows, untilMs: hours[index - 1]! };
      rows.push(...(await read(tx, search, [startMs, startMs + HOUR_MS], search.limit + 1 - rows.length)));
      if (rows.length > search.limit) return { rows, untilMs: startMs };
    }
    return { rows, untilMs: hours.length < this.maxSearch.hours ? null : hours.at(-1)! };
  }
}

/** The hours from the cursor on in which the model and the key were used, newest first. Read from the index alone. */
async function hoursOf(
  tx: EntityManager,
  { tenantId, fromMs, below, model, keyId }: Search,
  maxHours: number,
): Promise<number[]> {
  // Without an id, the place is below all of its time, which may be the first of an hour.
  const topHourMs = hourOf(below.id === '' ? below.ms - 1 : below.ms);
  const values: unknown[] = [tenantId, iso(hourOf(fromMs)), iso(topHourMs + HOUR_MS), maxHours];
  const filters = [...named('model', model, values), ...named('key_id', keyId, values)].join(' AND ') || 'true';
  // Dropped months have sums, but no events. In hours, because a day may have 23 in the database's time zone.
  const from = `greatest($2::timestamptz, (SELECT kept_from()) - interval '48 hours')`;
  const range = { tenant: '$1', from, to: '$3' };
  const { amounts } = keyId === null ? hoursOfModels(range, filters) : hoursOfKeys(range, filters);
  const rows = await query<{ hour: Date }>(
    tx,
    `SELECT DISTINCT hour FROM ${amounts} AS hours ORDER BY hour DESC LIMIT $4`,
    values,
  );
  return rows.map(({ hour }) => hour.getTime());
}

/** The requests of a period, newest first, at most `limit`. */
function read(
  tx: EntityManager,
  { tenantId, fromMs, below, model, keyId, outcome, callerRequestId }: Search,
  [startMs, endMs]: readonly [number, number],
  limit: number,
): Promise<ListedRow[]> {
  const values: unknown[] = [tenantId, iso(Math.max(startMs, fromMs)), iso(endMs), iso(below.ms), below.id, limit];
  const filters = [...named('model', model, values), ...named('key_id', keyId, values)];
  // Literals, so that the planner can use the partial index.
  if (outcome !== null) filters.push(`outcome = '${outcome}'`);
  if (outcome !== null && OUTCOMES[outcome]) filters.push(`outcome <> 'complete'`);
  return query<ListedRow>(
    tx,
    `SELECT ${EVENT_COLUMNS}, (life::json ->> 'firstMs')::float8 AS first_ms
     FROM ${callerRequestId === null ? 'usage_event' : ofCaller(callerRequestId, values)} AS events
     WHERE ${['tenant_id = $1', 'ended_at >= $2', 'ended_at < $3', 'ended_at <= $4', ...filters].join(' AND ')}
       AND (ended_at, id) < ($4, $5)
     ORDER BY ended_at DESC, id DESC LIMIT $6`,
    values,
  );
}

/**
 * The events with an id that their callers chose. OFFSET keeps the planner from searching all requests of the tenant
 * for them.
 */
const ofCaller = (callerRequestId: string, values: unknown[]): string => `(
  SELECT * FROM usage_event WHERE id = ANY(ARRAY(
    SELECT c.id FROM caller_request c WHERE caller_request_id = $${values.push(callerRequestId)}
    ORDER BY id DESC LIMIT ${MAX_NAMED}
  )) OFFSET 0
)`;

/** A condition of a filter, if there is one. Adds its value. */
function named(column: string, value: string | null, values: unknown[]): string[] {
  return value === null ? [] : [`${column} = $${values.push(value)}`];
}

function readSearch(asked: RequestsQuery): Search {
  const fromMs = asked.from === undefined ? BEGINNING_MS : parseTime('from', asked.from);
  const toMs = asked.to === undefined ? END_MS : parseTime('to', asked.to);
  if (fromMs > toMs) throw new RequestError('invalid_parameter', 'from must not be after to.');
  const { outcome = null } = asked;
  if (outcome !== null && !Object.hasOwn(OUTCOMES, outcome))
    throw new RequestError('invalid_parameter', `outcome must be one of ${Object.keys(OUTCOMES).join(', ')}.`);
  const { callerRequestId = null } = asked;
  if (callerRequestId !== null && !isCallerRequestId(callerRequestId))
    throw new RequestError('invalid_parameter', 'callerRequestId must have 1 to 64 characters from A-Za-z0-9_-.');
  const after = asked.after === undefined ? null : readCursor(asked.after);
  return {
    tenantId: asked.tenantId,
    fromMs,
    below: after !== null && after.ms < toMs ? after : { ms: toMs, id: '' },
    model: parseFilter('model', asked.model),
    keyId: parseFilter('keyId', asked.keyId),
    outcome,
    callerRequestId,
    limit: pageRows(asked.limit),
  };
}

function readCursor(after: string): Place {
  const [, time, id] = (typeof after === 'string' && CURSOR.exec(after)) || [];
  const ms = time === undefined ? NaN : Date.parse(time);
  // Negated, because a time that is none is NaN.
  if (!(ms >= BEGINNING_MS) || (id !== '' && !isId('req', id)))
    throw new RequestError('invalid_parameter', 'after must be the nextCursor of an earlier page of this list.');
  return { ms, id: id };
}
