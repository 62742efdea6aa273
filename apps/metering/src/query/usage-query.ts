import { Injectable } from '@nestjs/common';
import {
  MAX_BACKEND_USAGE_DAYS,
  RequestError,
  totalOf,
  type UsageGroup,
  type UsageGroupRow,
  type UnroundedUsage,
  type UsageQuery,
  type UsageSummary,
} from '@tollgate/contracts';
import { fitsAnswer } from '@tollgate/messaging';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';
import { HOUR_MS } from '../hours';
import { checkKept, ofPartialHour } from '../retain/kept-from';
import { iso, parseTime } from './parameters';
import { stepSql } from './steps';
import { UsageReads } from './usage-reads';
import { daysOfKeys, daysOfKeysAlone, hoursOfKeys, hoursOfModels, wholeDays, type Rollups } from './whole-hours';

/** More groups are refused, not cut off: a sum without some of them would be wrong. */
export const MAX_GROUPS = 10_000;

/** The columns of each grouping in USAGE, in sorting order. */
const GROUP_COLUMNS: Record<UsageGroup, string> = {
  day: stepSql('day'),
  hour: 'hour',
  model: 'model',
  key: 'key_id',
  backend: 'backend',
};

const NUMBERS = `requests, failed, client_closed, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
  estimated, cost_nanos`;
const FAILED = `(outcome IN ('upstream_error', 'credit_ended', 'expired'))::int AS failed`;
const CLIENT_CLOSED = `(outcome = 'client_closed')::int AS client_closed`;
const EVENTS = `
  SELECT date_trunc('hour', ended_at, 'UTC') AS hour, model, key_id, backend, 1 AS requests,
    ${FAILED}, ${CLIENT_CLOSED},
    prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, estimated::int AS estimated, cost_nanos
  FROM usage_event WHERE tenant_id = $1`;

/**
 * Rollups for the whole hours [$4, end), and events for the edges [$2, $4) and [end, $3). The end is $5, that of the
 * last full hour; or $8, that of the hour of $3, if no event of this hour ended after $3. So a range until now reads
 * only those events of the current hour that did not end normally, unless a later one is recorded. One statement, so
 * one snapshot. $6, $7: model and key or null.
 */
const usageFrom = ({ complete }: Rollups) => `
  SELECT hour, model, key_id, NULL::text AS backend, ${NUMBERS} FROM ${complete} AS hours
  UNION ALL ${EVENTS} AND ended_at >= $2 AND ended_at < $4
  UNION ALL ${EVENTS} AND ended_at >= ${END} AND ended_at < $3`;
const END = '(SELECT until FROM whole)';
const WITH_END = `
  WITH whole AS MATERIALIZED (
    SELECT CASE WHEN EXISTS (
        SELECT FROM usage_event WHERE tenant_id = $1 AND ended_at >= $3 AND ended_at < $8::timestamptz)
      THEN $5::timestamptz ELSE $8 END AS until
  )`;
const WHOLE = { tenant: '$1', from: '$4', to: END, firstDay: '$9', endOfDays: '$10' };
/** The smallest rollups that know what is asked. [$9, $10), for the days of keys: the whole days of the whole hours. */
const USAGE = {
  models: usageFrom(hoursOfModels(WHOLE, 'true')),
  days: usageFrom(daysOfKeys(WHOLE, 'true')),
  keyDays: usageFrom(daysOfKeysAlone(WHOLE, 'true')),
  hours: usageFrom(hoursOfKeys(WHOLE, 'true')),
};
/** Rollups do not know backends. $4, $5 and $8 are parameters without use. */
const USAGE_OF_EVENTS = `${EVENTS} AND ended_at >= $2 AND ended_at < $3
  AND ($4::timestamptz, $5::timestamptz, $8::timestamptz) IS NOT NULL`;

interface SumRow {
  day?: Date;
  hour?: Date;
  model?: string;
  key?: string;
  backend?: string | null;
  requests: string;
  failed: string;
  client_closed: string;
  prompt_tokens: string;
  cached_tokens: string;
  completion_tokens: string;
  reasoning_tokens: string;
  estimated: string;
  cost_nanos: string;
}

/** Answers `metering.usage.query`. */
@Injectable()
export class UsageQueries {
  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly reads: UsageReads,
  ) {}

  /**
   * Usage of one tenant that ended in [from, to). RequestError invalid_parameter: an invalid time or grouping, from
   * after to, more than MAX_GROUPS groups, backends of more than MAX_BACKEND_USAGE_DAYS, backends or a part of an hour
   * from before the kept events, an answer that is too large to be sent. UnavailableError.
   */
  async query(asked: UsageQuery): Promise<UsageSummary> {
    const from = parseTime('from', asked.from);
    const to = parseTime('to', asked.to);
    if (from > to) throw new RequestError('invalid_parameter', 'from must not be after to.');
    const groups = parseGroups(asked.groupBy);
    if (groups.includes('backend') && to - from > MAX_BACKEND_USAGE_DAYS * 24 * HOUR_MS)
      throw new RequestError(
        'invalid_parameter',
        `The range must not be longer than ${MAX_BACKEND_USAGE_DAYS} days if groupBy has backend. Narrow it.`,
      );
    // A range within one hour has no whole hour. All of it comes from the events, as the edge before wholeFrom = to.
    const wholeFrom = Math.min(Math.ceil(from / HOUR_MS) * HOUR_MS, to);
    const wholeTo = Math.max(Math.floor(to / HOUR_MS) * HOUR_MS, wholeFrom);
    const times = [from, to, wholeFrom, wholeTo].map(iso);
    const endOfHour = iso(wholeTo === to ? to : wholeTo + HOUR_MS);
    const source = sourceOf(groups, asked);
    const days = source === 'days' || source === 'keyDays' ? wholeDays(times[2]!, times[3]!) : [];
    const values = [asked.tenantId, ...times, asked.model ?? null, asked.keyId ?? null, endOfHour, ...days];
    const { transaction } = this.reads.of(asked.tenantId);
    const rows = await transaction((tx) => query<SumRow>(tx, statement(groups, source), values));
    // Checked after the answer, so that a month that was dropped meanwhile is noticed.
    const needed = groups.includes('backend') ? [from] : [from, to].filter(ofPartialHour);
    await checkKept(this.dataSource, needed, 'Ask for full hours, without backends.');
    if (rows.length > MAX_GROUPS) {
      throw new RequestError(
        'invalid_parameter',
        `The query has more than ${MAX_GROUPS.toLocaleString('en')} groups. ` +
          'Narrow the range, or group by fewer fields.',
      );
    }
    const summary = { from: times[0]!, to: times[1]!, ...summarize(rows, groups) };
    if (await fitsAnswer(summary)) return summary;
    throw new RequestError(
      'invalid_parameter',
      'The groups of the query are too many for one answer. Narrow the range, or group by fewer fields.',
    );
  }
}

type Source = keyof typeof USAGE | 'events';

function sourceOf(groups: readonly UsageGroup[], { model, keyId }: UsageQuery): Source {
  if (groups.includes('backend')) return 'events';
  if (keyId === undefined && !groups.includes('key')) return 'models';
  if (groups.includes('hour')) return 'hours';
  return model === undefined && !groups.includes('model') ? 'keyDays' : 'days';
}

function statement(groups: readonly UsageGroup[], source: Source): string {
  const keys = groups.map((group) => `${GROUP_COLUMNS[group]} AS "${group}", `).join('');
  const positions = groups.map((_, index) => index + 1).join(', ');
  const limits =
    groups.length > 0 ? `GROUP BY ${positions} ORDER BY ${positions} LIMIT ${MAX_GROUPS + 1}` : 'HAVING count(*) > 0';
  const sums = NUMBERS.split(/,\s+/).map((name) => `sum(${name}) AS ${name}`);
  return `
    ${source === 'events' ? '' : WITH_END}
    SELECT ${keys}${sums.join(', ')}
    FROM (${source === 'events' ? USAGE_OF_EVENTS : USAGE[source]}) AS usage
    WHERE ($6::text IS NULL OR model = $6) AND ($7::text IS NULL OR key_id = $7)
    ${limits}`;
}

function summarize(rows: readonly SumRow[], groups: readonly UsageGroup[]): Pick<UsageSummary, 'totals' | 'groups'> {
  const { totals, parts } = totalOf(rows.map(numbers));
  if (groups.length === 0) return { totals, groups: [] };
  return { totals, groups: rows.map((row, index): UsageGroupRow => ({ ...groupFields(row), ...parts[index]! })) };
}

function numbers(row: SumRow): UnroundedUsage {
  const promptTokens = Number(row.prompt_tokens);
  const completionTokens = Number(row.completion_tokens);
  const estimatedRequests = Number(row.estimated);
  return {
    requests: Number(row.requests),
    failed: Number(row.failed),
    clientClosed: Number(row.client_closed),
    promptTokens,
    cachedTokens: Number(row.cached_tokens),
    completionTokens,
    reasoningTokens: Number(row.reasoning_tokens),
    totalTokens: promptTokens + completionTokens,
    costNanos: row.cost_nanos,
    ...(estimatedRequests > 0 && { estimatedRequests }),
  };
}

function groupFields({ day, hour, model, key, backend }: SumRow): Partial<UsageGroupRow> {
  return {
    ...(day && { day: day.toISOString().slice(0, 10) }),
    ...(hour && { hour: hour.toISOString() }),
    ...(model !== undefined && { model }),
    ...(key !== undefined && { key }),
    ...(backend !== undefined && { backend }),
  };
}

/** Each group once, in sorting order. */
function parseGroups(groupBy: readonly UsageGroup[]): UsageGroup[] {
  for (const group of groupBy) {
    if (!Object.hasOwn(GROUP_COLUMNS, group))
      throw new RequestError('invalid_parameter', 'groupBy may contain only model, key, day, hour and backend.');
  }
  return (Object.keys(GROUP_COLUMNS) as UsageGroup[]).filter((group) => groupBy.includes(group));
}
