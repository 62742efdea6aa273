import type { RedisLink } from '@tollgate/redis';
import type { LookRefusal, LookRequest, LookResult } from '../admission-store';
import { fillIn, lookMistake } from '../postgres/caller-mistakes';
import { callByTenant } from './by-tenant';
import { budget } from './json-arguments';

const VALUES_PER_RESULT = 7;

export interface LookContext {
  now: number | '';
  /** A tenant for which the books were not asked is not judged. */
  mustBeKnown: boolean;
  /** The error for it. */
  unknown: (tenantId: string) => Error;
}

/** The function `look` (lua/4_look.lua). The registry of tenants is not told: nothing is left to sweep of one that only looks. */
export async function callLook(
  link: RedisLink,
  requests: readonly LookRequest[],
  { now, mustBeKnown, unknown }: LookContext,
): Promise<(LookResult | Error)[]> {
  const results: (LookResult | Error | undefined)[] = requests.map(lookMistake);
  const answers = await callByTenant<LookRequest, LookResult>(
    link,
    'look',
    requests.filter((_, index) => !results[index]),
    ({ tenantId }) => tenantId,
    (items) => [now, mustBeKnown ? '1' : '0', JSON.stringify(items.map(toArray))],
    (reply, { tenantId, items }) => readReply(reply) ?? new Array<Error>(items.length).fill(unknown(tenantId)),
  );
  return fillIn(results, answers);
}

/** Null: the books were not asked for this tenant yet. */
function readReply(reply: unknown): LookResult[] | null {
  const values = reply as (string | number | null)[];
  if (values[0] === 'unknown') return null;
  const results: LookResult[] = [];
  for (let at = 0; at < values.length; at += VALUES_PER_RESULT) results.push(readResult(values, at));
  return results;
}

function toArray({ keyId, keyLimits, tenantLimits, keyBudgetNanos, tenantBudgetNanos, isPaid }: LookRequest) {
  return [
    keyId,
    keyLimits.requestsPerMinute,
    keyLimits.tokensPerMinute,
    keyLimits.concurrency,
    tenantLimits.requestsPerMinute,
    tenantLimits.tokensPerMinute,
    tenantLimits.concurrency,
    budget(keyBudgetNanos),
    budget(tenantBudgetNanos),
    isPaid,
  ];
}

function readResult(values: readonly (string | number | null)[], at: number): LookResult {
  const limits = {
    requestsRemaining: values[at + 3] as number,
    requestsResetMs: values[at + 4] as number,
    tokensRemaining: values[at + 5] as number,
    tokensResetMs: values[at + 6] as number,
  };
  const code = values[at];
  if (code === null) return { kind: 'clear', limits };
  return {
    kind: 'refused',
    reason: code as LookRefusal['reason'],
    scope: values[at + 1] as LookRefusal['scope'],
    retryAfterMs: values[at + 2] as number | null,
    limits,
  };
}
