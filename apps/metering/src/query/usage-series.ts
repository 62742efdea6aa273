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
import { byIndex } from './by-index';
import { parseCount, parseFilter } from './parameters';
import { readSteps, stepSql } from './steps';
import { UsageReads } from './usage-reads';
import { daysOfKeys, daysOfKeysAlone, hoursOfKeys, hoursOfModels, wholeDays } from './whole-hours';

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

/** Answers `metering.usage.series` from the rollups. */
@Injectable()
export class UsageSeriesQueries {
  constructor(private readonly reads: UsageReads) {}

  /** RequestError invalid_parameter; UnavailableError. */
  async query(asked: UsageSeriesQuery): Promise<UsageSeries> {
    const { step, by } = asked;
    if (by !== undefined && !Object.hasOwn(COLUMNS, by))
      throw new RequestError('invalid_parameter', 'by must be model or key.');
    const top = parseCount('top', asked.top ?? DEFAULT_TOP, MAX_SERIES_NAMES);
    const [from, to] = readSteps(asked);
    const [model, keyId] = [parseFilter('model', asked.model), parseFilter('keyId', asked.keyId)];
    const source = sourceOf(step, by, model, keyId);
    const rows = await byIndex(this.reads.of(asked.tenantId), (tx) =>
      query<PointRow>(tx, statement(step, by, source), [
        ...[asked.tenantId, from, to, model, keyId, top],
        ...(source === 'models' || source === 'hours' ? [] : wholeDays(from, to)),
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
type Source = 'models' | 'days' | 'hours' | TopKeys;
/** The first keys, of one model or of all. */
type TopKeys = 'top-keys' | 'top-keys-of-model';

function sourceOf(step: UsageStep, by: UsageSeriesQuery['by'], model: string | null, keyId: string | null): Source {
  if (keyId === null && by === 'key') return model === null ? 'top-keys' : 'top-keys-of-model';
  if (keyId === null) return 'models';
  return step === 'hour' ? 'hours' : 'days';
}

const SUMS = [
  'requests',
  'failed',
  'client_closed',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'cost_nanos',
];
const SUMMED = SUMS.map((sum) => `sum(${sum}) AS ${sum}`).join(', ');
const OF_MODEL = '($4::text IS NULL OR model = $4)';
/** Selects all keys. The statement has the parameter anyway. */
const OF_ALL_KEYS = `${OF_MODEL} AND $5::text IS NULL`;
const FILTERS = `${OF_MODEL} AND ($5::text IS NULL OR key_id = $5)`;
const RANGE = { tenant: '$1', from: '$2', to: '$3', firstDay: '$7', endOfDays: '$8' };
const TABLES = {
  models: hoursOfModels(RANGE, OF_ALL_KEYS),
  days: daysOfKeys(RANGE, FILTERS),
  hours: hoursOfKeys(RANGE, FILTERS),
};
const rankedSql = (name: string, table: string) => `
  SELECT ${name} AS name, row_number() OVER (ORDER BY sum(cost_nanos) DESC, ${name}) AS rank
  FROM ${table} AS named WHERE ${name} <> '' GROUP BY ${name} ORDER BY rank LIMIT $6`;

/**
 * $1: tenant. [$2, $3): whole steps. $4, $5: model and key or null. $6: names with their own series. [$7, $8), for
 * days of keys: the whole days. In `usage`, an empty name has no series of its own.
 */
function statement(step: UsageStep, by: UsageSeriesQuery['by'], source: Source): string {
  const name = by === undefined ? `''` : COLUMNS[by];
  const usage =
    source === 'top-keys' || source === 'top-keys-of-model'
      ? topKeysOf(step, source)
      : usageOf(step, name, TABLES[source].complete);
  return `
    WITH ${usage}
    SELECT at, top.name AS name, min(rank)::int AS rank, ${SUMMED}
    FROM usage LEFT JOIN top USING (name)
    GROUP BY at, top.name ORDER BY at, top.name LIMIT ${MAX_SERIES_POINTS + 1}`;
}

const usageOf = (step: UsageStep, name: string, table: string) => `
  usage AS (
    SELECT ${stepSql(step)} AS at, ${name} AS name, ${SUMMED} FROM ${table} AS hours GROUP BY 1, 2
  ), top AS (${rankedSql('name', 'usage')})`;

/**
 * By key. A week of thousands of keys has hundreds of thousands of hours. So the days rank the keys, the sums of the
 * first ones are read by the index, and the others are what remains of the sums without keys.
 */
function topKeysOf(step: UsageStep, source: TopKeys): string {
  const at = stepSql(step);
  const ofTop = 'key_id = ANY (ARRAY(SELECT name FROM top))';
  const daysOf = (where: string) =>
    source === 'top-keys'
      ? daysOfKeysAlone(RANGE, `$4::text IS NULL AND ${where}`)
      : daysOfKeys(RANGE, `${OF_MODEL} AND ${where}`);
  const { complete } = step === 'hour' ? hoursOfKeys(RANGE, `${OF_MODEL} AND ${ofTop}`) : daysOf(ofTop);
  return `
  top AS (${rankedSql('key_id', daysOf('true').amounts)}), named AS (
    SELECT ${at} AS at, key_id AS name, ${SUMMED} FROM ${complete} AS hours GROUP BY 1, 2
  ), whole AS (
    SELECT ${at} AS at, ${SUMMED} FROM ${TABLES.models.complete} AS hours GROUP BY 1
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
