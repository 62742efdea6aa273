import { Injectable } from '@nestjs/common';
import {
  RequestError,
  roundPartsToCents,
  type UsageGroup,
  type UsageGroupRow,
  type UsageNumbers,
  type UsageQuery,
  type UsageSummary,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';
import { HOUR_MS, parseTime } from './parameters';

/** More groups are refused, not cut off: a sum without some of them would be wrong. */
export const MAX_GROUPS = 10_000;

/** The columns of each grouping in USAGE, in sorting order. */
const GROUP_COLUMNS: Record<UsageGroup, string> = {
  day: `date_trunc('day', hour, 'UTC')`,
  hour: 'hour',
  model: 'model',
  key: 'key_id',
};

/**
 * Rollups for the whole hours [$4, $5), and events for the edges [$2, $4) and [$5, $3). One statement, so one snapshot.
 * $6, $7: model and key or null.
 */
const USAGE = `
  SELECT hour, model, key_id, requests, prompt_tokens, completion_tokens, estimated, cost_nanos
  FROM usage_hour WHERE tenant_id = $1 AND hour >= $4 AND hour < $5
  UNION ALL
  SELECT date_trunc('hour', ended_at, 'UTC'), model, key_id, 1, prompt_tokens, completion_tokens, estimated::int,
    cost_nanos
  FROM usage_event WHERE tenant_id = $1 AND ended_at >= $2 AND ended_at < $4
  UNION ALL
  SELECT date_trunc('hour', ended_at, 'UTC'), model, key_id, 1, prompt_tokens, completion_tokens, estimated::int,
    cost_nanos
  FROM usage_event WHERE tenant_id = $1 AND ended_at >= $5 AND ended_at < $3`;

interface SumRow {
  day?: Date;
  hour?: Date;
  model?: string;
  key?: string;
  requests: string;
  prompt: string;
  completion: string;
  estimated: string;
  cost: string;
}

/** Answers `metering.usage.query`. */
@Injectable()
export class UsageQueries {
  constructor(private readonly dataSource: MeteringDataSource) {}

  /**
   * Usage of one tenant that ended in [from, to). RequestError invalid_parameter: an invalid time or grouping, from
   * after to, more than MAX_GROUPS groups.
   */
  async query(asked: UsageQuery): Promise<UsageSummary> {
    const from = parseTime('from', asked.from);
    const to = parseTime('to', asked.to);
    if (from > to) throw new RequestError('invalid_parameter', 'from must not be after to.');
    const groups = parseGroups(asked.groupBy);
    // A range within one hour has no whole hour. All of it comes from the events, as the edge before wholeFrom = to.
    const wholeFrom = Math.min(Math.ceil(from / HOUR_MS) * HOUR_MS, to);
    const wholeTo = Math.max(Math.floor(to / HOUR_MS) * HOUR_MS, wholeFrom);
    const times = [from, to, wholeFrom, wholeTo].map((ms) => new Date(ms).toISOString());
    const values = [asked.tenantId, ...times, asked.model ?? null, asked.keyId ?? null];
    const rows = await query<SumRow>(this.dataSource, statement(groups), values);
    if (rows.length > MAX_GROUPS) {
      throw new RequestError(
        'invalid_parameter',
        `The query has more than ${MAX_GROUPS.toLocaleString('en')} groups. ` +
          'Narrow the range, or group by fewer fields.',
      );
    }
    return { from: times[0]!, to: times[1]!, ...summarize(rows, groups) };
  }
}

function statement(groups: readonly UsageGroup[]): string {
  const keys = groups.map((group) => `${GROUP_COLUMNS[group]} AS "${group}", `).join('');
  const positions = groups.map((_, index) => index + 1).join(', ');
  const limits =
    groups.length > 0 ? `GROUP BY ${positions} ORDER BY ${positions} LIMIT ${MAX_GROUPS + 1}` : 'HAVING count(*) > 0';
  return `
    SELECT ${keys}sum(requests) AS requests, sum(prompt_tokens) AS prompt, sum(completion_tokens) AS completion,
      sum(estimated) AS estimated, sum(cost_nanos) AS cost
    FROM (${USAGE}) AS usage
    WHERE ($6::text IS NULL OR model = $6) AND ($7::text IS NULL OR key_id = $7)
    ${limits}`;
}

function summarize(rows: readonly SumRow[], groups: readonly UsageGroup[]): Pick<UsageSummary, 'totals' | 'groups'> {
  const { totalCents, partCents } = roundPartsToCents(rows.map((row) => BigInt(row.cost)));
  const parts = rows.map((row, index) => numbers(row, partCents[index]!));
  const totals: UsageNumbers = {
    requests: 0,
    promptTokens: 0,
    completionTokens: 0,
    totalTokens: 0,
    costCents: Number(totalCents),
  };
  let estimated = 0;
  for (const part of parts) {
    estimated += part.estimatedRequests ?? 0;
    totals.requests += part.requests;
    totals.promptTokens += part.promptTokens;
    totals.completionTokens += part.completionTokens;
    totals.totalTokens += part.totalTokens;
  }
  if (estimated > 0) totals.estimatedRequests = estimated;
  if (groups.length === 0) return { totals, groups: [] };
  return { totals, groups: rows.map((row, index): UsageGroupRow => ({ ...groupFields(row), ...parts[index]! })) };
}

function numbers(row: SumRow, costCents: bigint): UsageNumbers {
  const promptTokens = Number(row.prompt);
  const completionTokens = Number(row.completion);
  const estimatedRequests = Number(row.estimated);
  return {
    requests: Number(row.requests),
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    costCents: Number(costCents),
    ...(estimatedRequests > 0 && { estimatedRequests }),
  };
}

function groupFields({ day, hour, model, key }: SumRow): Partial<Record<UsageGroup, string>> {
  return {
    ...(day && { day: day.toISOString().slice(0, 10) }),
    ...(hour && { hour: hour.toISOString() }),
    ...(model !== undefined && { model }),
    ...(key !== undefined && { key }),
  };
}

/** Each group once, in sorting order. */
function parseGroups(groupBy: readonly UsageGroup[]): UsageGroup[] {
  for (const group of groupBy) {
    if (!Object.hasOwn(GROUP_COLUMNS, group))
      throw new RequestError('invalid_parameter', 'groupBy may contain only model, key, day and hour.');
  }
  return (Object.keys(GROUP_COLUMNS) as UsageGroup[]).filter((group) => groupBy.includes(group));
}
