import type { LookRefusal, LookRequest, LookResult } from '../admission-store';
import type { Call, Row } from './connections';
import { cappedNanos, numbers } from './sql-arrays';

/** `look` of functions/look.sql: its arguments, in the order of that file, and its answer. */
export function lookCall(requests: readonly LookRequest[], nowMs: number | null): Call {
  const values = [
    nowMs,
    requests.map(({ tenantId }) => tenantId),
    requests.map(({ keyId }) => keyId),
    numbers(requests, ({ keyLimits }) => keyLimits.requestsPerMinute),
    numbers(requests, ({ keyLimits }) => keyLimits.tokensPerMinute),
    numbers(requests, ({ keyLimits }) => keyLimits.concurrency),
    numbers(requests, ({ tenantLimits }) => tenantLimits.requestsPerMinute),
    numbers(requests, ({ tenantLimits }) => tenantLimits.tokensPerMinute),
    numbers(requests, ({ tenantLimits }) => tenantLimits.concurrency),
    numbers(requests, ({ keyBudgetNanos }) => keyBudgetNanos && cappedNanos(keyBudgetNanos)),
    numbers(requests, ({ tenantBudgetNanos }) => tenantBudgetNanos && cappedNanos(tenantBudgetNanos)),
    numbers(requests, ({ isPaid }) => isPaid),
  ];
  return { name: 'look', text: 'SELECT * FROM look($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)', values };
}

export function lookResult(row: Row): LookResult {
  const [, code, scope, retryMs, requestsLeft, requestsResetMs, tokensLeft, tokensResetMs] = row;
  const limits = {
    requestsRemaining: Number(requestsLeft),
    requestsResetMs: Number(requestsResetMs),
    tokensRemaining: Number(tokensLeft),
    tokensResetMs: Number(tokensResetMs),
  };
  if (code === null) return { kind: 'clear', limits };
  return {
    kind: 'refused',
    reason: code as LookRefusal['reason'],
    scope: scope as LookRefusal['scope'],
    retryAfterMs: retryMs === null ? null : Number(retryMs),
    limits,
  };
}
