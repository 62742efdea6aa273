import { Injectable } from '@nestjs/common';
import {
  MAX_SERIES_NAMES,
  MAX_SERIES_POINTS,
  RequestError,
  type UsagePoint,
  type UsageSeries,
  type UsageSeriesQuery,
  type UsageStep,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';
import { byIndex } from './by-index';
import { parseCount, parseFilter } from './parameters';
import { readSteps, stepSql } from './steps';
import { daysOfKeysSql, hoursOfModelsSql, hoursSql, wholeDays } from './whole-hours';

const DEFAULT_TOP = 10;
const COLUMNS = { model: 'model', key: 'key_id' } as const;

interface PointRow {
  at: Date;
  name: string | null;
  requests: string;
  failed: string;
  client_closed: string;
  prompt_tokens: string;
  cached_tokens: string;
  completion_tokens: string;
  cost_nanos: string;
  rank: number | null;
}

/**
 * Answers `metering.usage.series` from the rollups. What did not end normally is not in them. It is counted in the
 * index of those events (migrations/006_unfinished.sql), and in sums once their month is dropped.
 */
@Injectable()
export class UsageSeriesQueries {
  constructor(private readonly dataSource: MeteringDataSource) {}

  /** RequestError invalid_parameter. */
  async query(asked: UsageSeriesQuery): Promise<UsageSeries> {
    const { step, by } = asked;
    if (by !== undefined && !Object.hasOwn(COLUMNS, by))
      throw new RequestError('invalid_parameter', 'by must be model or key.');
    const top = parseCount('top', asked.top ?? DEFAULT_TOP, MAX_SERIES_NAMES);
    const [from, to] = readSteps(asked);
    const [model, keyId] = [parseFilter('model', asked.model), parseFilter('keyId', asked.keyId)];
    const source = sourceOf(step, by, keyId);
    const rows = await byIndex(this.dataSource, (tx) =>
      query<PointRow>(tx, statement(step, by, source), [
        ...[asked.tenantId, from, to, model, keyId, top],
        ...(source === 'days' || source === 'top-keys' ? wholeDays(from, to) : []),
      ]),
    );
    if (rows.length > MAX_SERIES_POINTS)
      throw new RequestError(
        'invalid_parameter',
        `The series have more than ${MAX_SERIES_POINTS.toLocaleString('en')} points. Narrow the range, or lower top.`,
      );
    return { from, to, names: namesOf(rows), points: rows.map(point) };
  }
}

/** The smallest rollups that know what is asked. */
type Source = 'models' | 'days' | 'hours' | 'top-keys';

function sourceOf(step: UsageStep, by: UsageSeriesQuery['by'], keyId: string | null): Source {
  if (keyId === null) return by === 'key' ? 'top-keys' : 'models';
  return step === 'hour' ? 'hours' : 'days';
}

const SUMS = ['requests', 'prompt_tokens', 'cached_tokens', 'completion_tokens', 'cost_nanos'];
const SUMMED = SUMS.map((sum) => `sum(${sum}) AS ${sum}`).join(', ');
const OF_MODEL = '($4::text IS NULL OR model = $4)';
const FILTERS = `${OF_MODEL} AND ($5::text IS NULL OR key_id = $5)`;
const RANGE = { tenant: '$1', from: '$2', to: '$3', firstDay: '$7', endOfDays: '$8' };
const TABLES = {
  models: hoursOfModelsSql(RANGE, OF_MODEL),
  days: daysOfKeysSql(RANGE, FILTERS),
  hours: hoursSql(RANGE, FILTERS),
};
const rankedSql = (name: string, table: string) => `
  SELECT ${name} AS name, row_number() OVER (ORDER BY sum(cost_nanos) DESC, ${name}) AS rank
  FROM ${table} AS named WHERE ${name} <> '' GROUP BY ${name} ORDER BY rank LIMIT $6`;

/**
 * $1: tenant. [$2, $3): whole steps. $4, $5: model and key or null. $6: names with a series of their own. [$7, $8), for
 * days of keys: the whole days. In `usage` and `unfinished`, an empty name has no series of its own.
 */
function statement(step: UsageStep, by: UsageSeriesQuery['by'], source: Source): string {
  const name = by === undefined ? `''` : COLUMNS[by];
  const usage = source === 'top-keys' ? topKeysOf(step) : usageOf(step, name, TABLES[source]);
  const known = source === 'top-keys' ? `CASE WHEN key_id IN (SELECT name FROM top) THEN key_id ELSE '' END` : name;
  return `
    WITH ${usage}, unfinished AS (
      SELECT at, name, sum(failed) AS failed, sum(client_closed) AS client_closed FROM (
        SELECT ${stepSql(step, 'ended_at')} AS at, ${known} AS name,
          count(*) FILTER (WHERE outcome <> 'client_closed') AS failed,
          count(*) FILTER (WHERE outcome = 'client_closed') AS client_closed
        FROM usage_event
        WHERE tenant_id = $1 AND ended_at >= $2 AND ended_at < $3 AND outcome <> 'complete' AND ${FILTERS}
        GROUP BY 1, 2
        UNION ALL
        SELECT ${stepSql(step, 'hour')} AS at, ${known} AS name, sum(failed), sum(client_closed)
        FROM dropped_unfinished WHERE tenant_id = $1 AND hour >= $2 AND hour < $3 AND ${FILTERS}
        GROUP BY 1, 2) AS counts
      GROUP BY 1, 2
    )
    SELECT at, top.name AS name, min(rank)::int AS rank, sum(requests) AS requests,
      coalesce(sum(failed), 0) AS failed, coalesce(sum(client_closed), 0) AS client_closed,
      sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
      sum(completion_tokens) AS completion_tokens, sum(cost_nanos) AS cost_nanos
    FROM usage
    LEFT JOIN unfinished USING (at, name)
    LEFT JOIN top USING (name)
    GROUP BY at, top.name ORDER BY at, top.name LIMIT ${MAX_SERIES_POINTS + 1}`;
}

const usageOf = (step: UsageStep, name: string, table: string) => `
  usage AS (
    SELECT ${stepSql(step, 'hour')} AS at, ${name} AS name, ${SUMMED} FROM ${table} AS hours GROUP BY 1, 2
  ), top AS (${rankedSql('name', 'usage')})`;

/**
 * By key. A week of thousands of keys has hundreds of thousands of hours. So the days rank the keys, the sums of the
 * first ones are read by the index, and the others are what remains of the sums without keys.
 */
function topKeysOf(step: UsageStep): string {
  const at = stepSql(step, 'hour');
  const ofTop = `${OF_MODEL} AND key_id = ANY (ARRAY(SELECT name FROM top))`;
  const table = step === 'hour' ? hoursSql(RANGE, ofTop) : daysOfKeysSql(RANGE, ofTop);
  return `
  top AS (${rankedSql('key_id', daysOfKeysSql(RANGE, OF_MODEL))}), named AS (
    SELECT ${at} AS at, key_id AS name, ${SUMMED} FROM ${table} AS hours GROUP BY 1, 2
  ), whole AS (
    SELECT ${at} AS at, ${SUMMED} FROM ${TABLES.models} AS hours GROUP BY 1
  ), of_named AS (
    SELECT at, ${SUMMED} FROM named GROUP BY 1
  ), usage AS (
    SELECT * FROM named
    UNION ALL
    SELECT at, '', ${SUMS.map((sum) => `whole.${sum} - coalesce(of_named.${sum}, 0)`).join(', ')}
    FROM whole LEFT JOIN of_named USING (at) WHERE whole.requests > coalesce(of_named.requests, 0)
  )`;
}

/** By rank. Each has a point, because it has usage in the range. */
function namesOf(rows: readonly PointRow[]): string[] {
  const ranks = new Map<string, number>();
  for (const { name, rank } of rows) if (name !== null) ranks.set(name, rank!);
  return [...ranks].sort(([, a], [, b]) => a - b).map(([name]) => name);
}

function point(row: PointRow): UsagePoint {
  return {
    at: row.at.toISOString(),
    name: row.name,
    requests: Number(row.requests),
    failed: Number(row.failed),
    clientClosed: Number(row.client_closed),
    promptTokens: Number(row.prompt_tokens),
    cachedTokens: Number(row.cached_tokens),
    completionTokens: Number(row.completion_tokens),
    costNanos: row.cost_nanos,
  };
}
