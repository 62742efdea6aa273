import { Injectable } from '@nestjs/common';
import {
  isId,
  RequestError,
  type Outcome,
  type Page,
  type RecordedEvent,
  type RequestsQuery,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';
import { HOUR_MS, hourOf, parseCount, parseFilter, parseTime } from './parameters';
import { EVENT_COLUMNS, recordedEvent, type EventRow } from './recorded-events';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 200;
/**
 * The work of one page of a search: events of the hours that it searches (at least one hour), rows of rollups that
 * choose these hours, and the hours themselves.
 */
const MAX_SEARCH = { events: 100_000, rollUps: 50_000, hours: 1_000 };
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
  limit: number;
}

/** One row with `hour` null if no hour matches. */
interface HourRow {
  hour: Date | null;
  requests: string;
  matching: string;
  read: string;
  lowest: Date | null;
}

/** Where a page looks: times in ascending pairs of [start, end), newest first. */
interface Reach {
  periods: readonly (readonly [startMs: number, endMs: number])[];
  /** The search has not looked below this time. Null: it looks everywhere. */
  untilMs: number | null;
}

/**
 * Answers `metering.requests.list` from the index of tenant and end, which every page reads from its cursor on.
 *
 * No index has the model or the key: each would cost the recording of every event. The rollups know in which hours a
 * key or a model was used, so a search skips all other hours. Requests that did not end normally have an index of their
 * own (migrations/006_unfinished.sql).
 */
@Injectable()
export class RequestsList {
  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly maxSearch = MAX_SEARCH,
  ) {}

  /** RequestError invalid_parameter. */
  async page(asked: RequestsQuery): Promise<Page<RecordedEvent>> {
    const search = readSearch(asked);
    const { periods, untilMs } = await this.reach(search);
    const rows = await this.read(search, periods);
    const data = rows.slice(0, search.limit).map(recordedEvent);
    const last = data.at(-1);
    if (rows.length > search.limit && last) return { data, nextCursor: `${last.endedAt}~${last.id}` };
    return { data, nextCursor: untilMs === null ? null : `${new Date(untilMs).toISOString()}~` };
  }

  private async reach(search: Search): Promise<Reach> {
    const { fromMs, below, model, keyId, outcome } = search;
    const everywhere: Reach = { periods: [[fromMs, below.ms + 1]], untilMs: null };
    // Few rows match, or all do: the indexes lead to them.
    if (outcome !== null && OUTCOMES[outcome]) return everywhere;
    if (outcome === null && model === null && keyId === null) return everywhere;
    return this.searchHours(search);
  }

  /** The hours, newest first, that hold enough matching requests, within the work of one page. */
  private async searchHours({ tenantId, fromMs, below, model, keyId, limit }: Search): Promise<Reach> {
    // Without an id, the place is below all of its time, which may be the first of an hour.
    const topHourMs = hourOf(below.id === '' ? below.ms - 1 : below.ms);
    const { events, rollUps, hours: maxHours } = this.maxSearch;
    const rows = await query<HourRow>(this.dataSource, HOURS_SQL, [
      tenantId,
      iso(hourOf(fromMs)),
      iso(topHourMs),
      model,
      keyId,
      rollUps,
      maxHours,
    ]);
    const periods: [number, number][] = [];
    let [matching, searched] = [0, 0];
    for (const { hour, ...row } of rows) {
      if (hour === null) break;
      if (matching > limit || searched >= events) return { periods, untilMs: periods.at(-1)![0] };
      periods.push([hour.getTime(), hour.getTime() + HOUR_MS]);
      searched += Number(row.requests);
      // Those of the first hour may be above the cursor.
      if (hour.getTime() < topHourMs) matching += Number(row.matching);
    }
    if (periods.length === maxHours) return { periods, untilMs: periods.at(-1)![0] };
    const { read, lowest } = rows[0]!;
    if (lowest === null || Number(read) < rollUps) return { periods, untilMs: null };
    return cutAt(lowest.getTime(), periods, topHourMs);
  }

  private async read(search: Search, periods: Reach['periods']): Promise<EventRow[]> {
    const { tenantId, fromMs, below, model, keyId, outcome, limit } = search;
    if (periods.length === 0) return [];
    return query<EventRow>(this.dataSource, eventsSql(outcome), [
      tenantId,
      periods.map(([startMs]) => iso(Math.max(startMs, fromMs))),
      periods.map(([, endMs]) => iso(endMs)),
      iso(below.ms),
      below.id,
      model,
      keyId,
      limit + 1,
    ]);
  }
}

/** Not all rollups were read, and those of the lowest hour perhaps in part. */
function cutAt(lowestMs: number, periods: [number, number][], topHourMs: number): Reach {
  // An hour with more rollups than a page reads is searched whole, so that every page gets ahead.
  if (lowestMs === topHourMs) return { periods: [[lowestMs, lowestMs + HOUR_MS]], untilMs: lowestMs };
  return { periods: periods.filter(([startMs]) => startMs > lowestMs), untilMs: lowestMs + HOUR_MS };
}

/**
 * The hours below $3 in which $4 (model) or $5 (key) was used, newest first, with all requests of the tenant in them.
 * `read`: rows of rollups that were read, at most $6; `lowest`: the hour of the last one.
 */
const HOURS_SQL = `
  WITH ahead AS MATERIALIZED (
    SELECT hour, requests, ($4::text IS NULL OR model = $4) AND ($5::text IS NULL OR key_id = $5) AS matches
    FROM usage_hour WHERE tenant_id = $1 AND hour >= $2 AND hour <= $3 ORDER BY hour DESC LIMIT $6
  ), summed AS (
    SELECT hour, sum(requests) AS requests, coalesce(sum(requests) FILTER (WHERE matches), 0) AS matching
    FROM ahead GROUP BY hour
  ), reached AS (SELECT count(*) AS read, min(hour) AS lowest FROM ahead)
  SELECT hour, requests, matching, read, lowest FROM reached LEFT JOIN summed ON matching > 0
  ORDER BY hour DESC LIMIT $7`;

/** The outcome is a literal, so that the planner can use the partial index. */
function eventsSql(outcome: Outcome | null): string {
  const ended = outcome === null ? '' : `AND outcome = '${outcome}'`;
  const unfinished = outcome !== null && OUTCOMES[outcome] ? `AND outcome <> 'complete'` : '';
  return `
    SELECT found.* FROM unnest($2::timestamptz[], $3::timestamptz[]) AS period (start_at, end_at)
    CROSS JOIN LATERAL (
      SELECT ${EVENT_COLUMNS} FROM usage_event
      WHERE tenant_id = $1 AND ended_at >= start_at AND ended_at < end_at
        AND ended_at <= $4 AND (ended_at, id) < ($4, $5)
        AND ($6::text IS NULL OR model = $6) AND ($7::text IS NULL OR key_id = $7) ${ended} ${unfinished}
      ORDER BY ended_at DESC, id DESC LIMIT $8
    ) AS found
    ORDER BY ended_at DESC, id DESC LIMIT $8`;
}

function readSearch(asked: RequestsQuery): Search {
  const fromMs = asked.from === undefined ? BEGINNING_MS : parseTime('from', asked.from);
  const toMs = asked.to === undefined ? END_MS : parseTime('to', asked.to);
  if (fromMs > toMs) throw new RequestError('invalid_parameter', 'from must not be after to.');
  const { outcome = null } = asked;
  if (outcome !== null && !Object.hasOwn(OUTCOMES, outcome))
    throw new RequestError('invalid_parameter', `outcome must be one of ${Object.keys(OUTCOMES).join(', ')}.`);
  const after = asked.after === undefined ? null : readCursor(asked.after);
  return {
    tenantId: asked.tenantId,
    fromMs,
    below: after !== null && after.ms < toMs ? after : { ms: toMs, id: '' },
    model: parseFilter('model', asked.model),
    keyId: parseFilter('keyId', asked.keyId),
    outcome,
    limit: parseCount('limit', asked.limit ?? DEFAULT_LIMIT, MAX_LIMIT),
  };
}

function readCursor(after: string): Place {
  const [, time, id] = (typeof after === 'string' && CURSOR.exec(after)) || [];
  const ms = time === undefined ? NaN : Date.parse(time);
  if (Number.isNaN(ms) || (id !== '' && !isId('req', id)))
    throw new RequestError('invalid_parameter', 'after must be a cursor of this list.');
  return { ms, id: id };
}

const iso = (ms: number): string => new Date(ms).toISOString();
