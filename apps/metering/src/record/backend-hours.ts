import { UNKNOWN_BACKEND, type UsageEvent } from '@tollgate/contracts';
import { queryPrepared } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { HOUR_CHARS, HOUR_MS, hourOf } from '../hours';
import { plainArray, textArray } from './array-literal';
import { isName } from './request-life';

/** No request runs longer, whatever a clock says. So one request changes the sums of at most this many hours. */
const MAX_HOURS = 24;
/** Concurrent batches rarely share one, so they rarely wait for each other. */
const SHARDS = 16;

interface BackendHourSum {
  hour: string;
  backend: string;
  requests: number;
  estimated: number;
  prompt: number;
  cached: number;
  completion: number;
  earlyPrompt: number;
  earlyCompletion: number;
  latePrompt: number;
  lateCompletion: number;
}

/** Names that were found valid. Checking their characters costs as much as everything else here. */
const known = new Set<string>();
const MAX_KNOWN = 1_000;

/** The backend name of an event, or null if it has none. An invalid name must not keep its event from being charged. */
export function backendOf({ backend }: UsageEvent): string | null {
  const value: unknown = backend;
  if (typeof value !== 'string') return null;
  if (known.has(value)) return value;
  if (!isName(value)) return null;
  if (known.size < MAX_KNOWN) known.add(value);
  return value;
}

/** One row per hour and backend, sorted by them. Consumers that share a shard lock rows in this order. */
export function sumByBackend(events: readonly UsageEvent[]): BackendHourSum[] {
  const sums = new Map<string, BackendHourSum>();
  const of = (at: string, backend: string): BackendHourSum => {
    const hour = `${at.slice(0, HOUR_CHARS)}:00:00.000Z`;
    const key = `${hour} ${backend}`;
    let sum = sums.get(key);
    if (!sum) {
      const none = { earlyPrompt: 0, earlyCompletion: 0, latePrompt: 0, lateCompletion: 0 };
      sums.set(key, (sum = { hour, backend, requests: 0, estimated: 0, prompt: 0, cached: 0, completion: 0, ...none }));
    }
    return sum;
  };
  for (const event of events) {
    const backend = backendOf(event) ?? UNKNOWN_BACKEND;
    const sum = of(event.endedAt, backend);
    sum.requests += 1;
    sum.estimated += event.estimated ? 1 : 0;
    sum.prompt += event.promptTokens;
    sum.cached += event.cachedTokens;
    sum.completion += event.completionTokens;
    const over = hoursBefore(event);
    if (over.length === 0) continue;
    sum.earlyPrompt += event.promptTokens;
    sum.earlyCompletion += event.completionTokens;
    for (const hour of over) {
      const before = of(hour, backend);
      before.latePrompt += event.promptTokens;
      before.lateCompletion += event.completionTokens;
    }
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}

/**
 * A time in each hour in which a request ran, before the hour in which it ended. Nearly all requests have no such hour,
 * and their times are not parsed.
 */
function hoursBefore({ startedAt, endedAt }: UsageEvent): string[] {
  if (startedAt.slice(0, HOUR_CHARS) === endedAt.slice(0, HOUR_CHARS)) return [];
  const hours: string[] = [];
  const startHour = hourOf(Date.parse(startedAt));
  for (let ms = Date.parse(endedAt) - HOUR_MS; hourOf(ms) >= startHour && hours.length < MAX_HOURS; ms -= HOUR_MS)
    hours.push(new Date(ms).toISOString());
  return hours;
}

/** Adds the sums of new events to the stored ones. */
export async function addToBackends(tx: EntityManager, sums: readonly BackendHourSum[]): Promise<void> {
  const numbers = (name: Exclude<keyof BackendHourSum, 'hour' | 'backend'>) => plainArray(sums.map((sum) => sum[name]));
  await queryPrepared(
    tx,
    `INSERT INTO backend_hour AS stored
     SELECT hour, backend, pg_backend_pid() % ${SHARDS}, requests, estimated, prompt, cached, completion, early_prompt,
       early_completion, late_prompt, late_completion
     FROM unnest($1::timestamptz[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
       $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
       AS s (hour, backend, requests, estimated, prompt, cached, completion, early_prompt, early_completion,
         late_prompt, late_completion)
     ON CONFLICT (hour, backend, shard) DO UPDATE SET
       requests = stored.requests + excluded.requests,
       estimated = stored.estimated + excluded.estimated,
       prompt_tokens = stored.prompt_tokens + excluded.prompt_tokens,
       cached_tokens = stored.cached_tokens + excluded.cached_tokens,
       completion_tokens = stored.completion_tokens + excluded.completion_tokens,
       early_prompt_tokens = stored.early_prompt_tokens + excluded.early_prompt_tokens,
       early_completion_tokens = stored.early_completion_tokens + excluded.early_completion_tokens,
       late_prompt_tokens = stored.late_prompt_tokens + excluded.late_prompt_tokens,
       late_completion_tokens = stored.late_completion_tokens + excluded.late_completion_tokens`,
    [
      plainArray(sums.map((sum) => sum.hour)),
      textArray(sums.map((sum) => sum.backend)),
      numbers('requests'),
      numbers('estimated'),
      numbers('prompt'),
      numbers('cached'),
      numbers('completion'),
      numbers('earlyPrompt'),
      numbers('earlyCompletion'),
      numbers('latePrompt'),
      numbers('lateCompletion'),
    ],
  );
}
