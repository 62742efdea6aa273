import {
  type BackendHour,
  type BackendTokens,
  type BackendVerdict,
  MAX_COMPARED_HOURS,
  RequestError,
  type ReplyOf,
  type RequestOf,
  UNKNOWN_BACKEND,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { parseTime } from '../query/parameters';
import { MAX_ENGINES } from './engines';
import { HOUR_MS, hourOf } from '../hours';
import { EDGE_SLACK_MS } from './sampler';

/** A larger drift is reported. */
const MAX_DRIFT_RATIO = 0.01;
/** A smaller drift is never reported: in an hour with little traffic a single request is more than a percent. */
const MAX_DRIFT_TOKENS = 1_000;
/**
 * An hour is judged this long after its end. By then requests that ran over its end have ended (a plain answer may take
 * 10 minutes) and are booked.
 */
export const JUDGE_AFTER_MS = 15 * 60_000;
/** Rows of one answer, beside the others of its last hour. An hour in which addresses changed has more engines. */
const MAX_ROWS = MAX_ENGINES;

interface Row {
  engine: string;
  backends: string[];
  hour: Date;
  counts_cached: boolean;
  first_at: Date | null;
  last_at: Date | null;
  engine_prompt: string;
  engine_generation: string;
  restarts: number;
  requests: string;
  estimated: string;
  prompt: string;
  cached: string;
  completion: string;
  early_prompt: string;
  early_completion: string;
  late_prompt: string;
  late_completion: string;
  unbilled_prompt: string;
  unbilled_completion: string;
}

/**
 * Answers `metering.backends.compare`: the engines' own counters beside the books, newest hour first. RequestError
 * invalid_parameter.
 */
export async function compareBackends(
  dataSource: DataSource,
  { hours, before }: RequestOf<'metering.backends.compare'>,
  nowMs = Date.now(),
): Promise<ReplyOf<'metering.backends.compare'>> {
  if (!Number.isInteger(hours) || hours < 1 || hours > MAX_COMPARED_HOURS)
    throw new RequestError('invalid_parameter', `hours must be a whole number from 1 to ${MAX_COMPARED_HOURS}.`);
  const beforeMs = before === undefined ? nowMs + HOUR_MS : parseTime('before', before);
  const from = new Date(hourOf(nowMs) - hours * HOUR_MS);
  const rows = await query<Row>(dataSource, COMPARE_SQL, [from, new Date(beforeMs), UNKNOWN_BACKEND, MAX_ROWS]);
  const nextCursor = rows.length < MAX_ROWS ? null : rows.at(-1)!.hour.toISOString();
  return { data: rows.map((row) => backendHour(row, nowMs)), nextCursor };
}

function backendHour(row: Row, nowMs: number): BackendHour {
  const standing = standingOf(row, nowMs);
  const restarted = row.restarts > 0;
  const unseen = row.counts_cached ? 0 : Number(row.cached);
  const prompt = {
    engine: Number(row.engine_prompt),
    booked: Number(row.prompt),
    early: Number(row.early_prompt) + unseen,
    late: Number(row.late_prompt),
    unbilled: Number(row.unbilled_prompt),
    restarted,
  };
  const generation = {
    engine: Number(row.engine_generation),
    booked: Number(row.completion),
    early: Number(row.early_completion),
    late: Number(row.late_completion),
    unbilled: Number(row.unbilled_completion),
    restarted,
  };
  return {
    engine: row.engine,
    backends: row.backends,
    hour: row.hour.toISOString(),
    requests: Number(row.requests),
    estimatedRequests: Number(row.estimated),
    restarts: row.restarts,
    prompt: judge(prompt, standing),
    generation: judge(generation, standing),
  };
}

/** Null if it can be judged. */
function standingOf(
  { hour, first_at, last_at }: Row,
  nowMs: number,
): Extract<BackendVerdict, 'running' | 'not_observed'> | null {
  const endMs = hour.getTime() + HOUR_MS;
  if (nowMs < endMs + JUDGE_AFTER_MS) return 'running';
  const watched =
    first_at !== null &&
    last_at !== null &&
    first_at.getTime() <= hour.getTime() + EDGE_SLACK_MS &&
    last_at.getTime() >= endMs - EDGE_SLACK_MS;
  return watched ? null : 'not_observed';
}

/**
 * @param early booked in the hour, but the engine may have counted it before, or does not count it at all
 * @param late booked later, but the engine may have counted it in the hour
 * @param unbilled further work of the engine that nobody is charged for
 * @param restarted the engine lost its count, so a count below the books proves nothing
 */
function judge(
  sides: { engine: number; booked: number; early: number; late: number; unbilled: number; restarted: boolean },
  standing: BackendVerdict | null = null,
): BackendTokens {
  const { engine, booked, unbilled, restarted } = sides;
  const least = Math.max(0, booked - sides.early);
  const most = booked + sides.late;
  const known = { engine, booked, least, most, unbilled };
  if (standing) return { ...known, drift: 0, driftRatio: 0, verdict: standing };
  const larger = Math.max(engine, booked, 1);
  const tolerated = Math.max(larger * MAX_DRIFT_RATIO, MAX_DRIFT_TOKENS);
  let drift = 0;
  if (engine > most + unbilled) drift = engine - most - unbilled;
  else if (engine < least && !restarted) drift = engine - least;
  const verdict = Math.abs(drift) > tolerated ? 'drifts' : engine - most > tolerated ? 'unclear' : 'agrees';
  return { ...known, drift, driftRatio: drift / larger, verdict };
}

/** `$1`, `$2`: hours from and before. `$3`: the name for events without a backend, which any engine may have served. */
const COMPARE_SQL = `
  WITH books AS (
    SELECT hour, backend, sum(requests) AS requests, sum(estimated) AS estimated, sum(prompt_tokens) AS prompt,
      sum(cached_tokens) AS cached, sum(completion_tokens) AS completion,
      sum(early_prompt_tokens) AS early_prompt, sum(early_completion_tokens) AS early_completion,
      sum(late_prompt_tokens) AS late_prompt, sum(late_completion_tokens) AS late_completion
    FROM backend_hour WHERE hour >= $1 AND hour < $2 GROUP BY hour, backend
  ), unbilled AS (
    SELECT hour, backend, sum(prompt_tokens) AS prompt, sum(completion_tokens) AS completion
    FROM backend_unbilled WHERE hour >= $1 AND hour < $2 GROUP BY hour, backend
    UNION ALL
    SELECT hour, NULL, prompt + late_prompt, completion + late_completion FROM books WHERE backend = $3
  )
  SELECT e.engine, e.backends, e.hour, e.counts_cached, e.first_at, e.last_at, e.prompt_tokens AS engine_prompt,
    e.generation_tokens AS engine_generation, e.restarts,
    b.*, u.*
  FROM (
      SELECT * FROM engine_hour WHERE hour >= $1 AND hour < $2
      ORDER BY hour DESC FETCH FIRST ($4) ROWS WITH TIES
    ) e,
    LATERAL (
      SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(estimated), 0) AS estimated,
        coalesce(sum(prompt), 0) AS prompt, coalesce(sum(cached), 0) AS cached,
        coalesce(sum(completion), 0) AS completion, coalesce(sum(early_prompt), 0) AS early_prompt,
        coalesce(sum(early_completion), 0) AS early_completion,
        coalesce(sum(late_prompt), 0) AS late_prompt, coalesce(sum(late_completion), 0) AS late_completion
      FROM books WHERE books.hour = e.hour AND backend = ANY(e.backends)
    ) b,
    LATERAL (
      SELECT coalesce(sum(prompt), 0) AS unbilled_prompt, coalesce(sum(completion), 0) AS unbilled_completion
      FROM unbilled WHERE unbilled.hour = e.hour AND (backend IS NULL OR backend = ANY(e.backends))
    ) u
  ORDER BY e.hour DESC, e.engine`;
