import { ceilDiv, FEMTOS_PER_NANO } from '@tollgate/contracts';
import type { AdmitRequest, AdmitResult, Refusal } from '../admission-store';
import type { Call, Row } from './connections';
import { cappedNanos, numbers } from './sql-arrays';

/** `admit` of functions/admit.sql: its arguments, in the order of that file, and its answer. */
export function admitCall(requests: readonly AdmitRequest[], nowMs: number | null, leaseMs: number): Call {
  const values = [
    nowMs,
    leaseMs,
    requests.map(({ draft }) => draft.id),
    requests.map(({ draft }) => draft.tenantId),
    requests.map(({ draft }) => draft.keyId),
    requests.map(({ draft }) => JSON.stringify(draft)),
    numbers(requests, ({ keyLimits }) => keyLimits.requestsPerMinute),
    numbers(requests, ({ keyLimits }) => keyLimits.tokensPerMinute),
    numbers(requests, ({ keyLimits }) => keyLimits.concurrency),
    numbers(requests, ({ tenantLimits }) => tenantLimits.requestsPerMinute),
    numbers(requests, ({ tenantLimits }) => tenantLimits.tokensPerMinute),
    numbers(requests, ({ tenantLimits }) => tenantLimits.concurrency),
    numbers(requests, ({ keyBudgetNanos }) => keyBudgetNanos && cappedNanos(keyBudgetNanos)),
    numbers(requests, ({ tenantBudgetNanos }) => tenantBudgetNanos && cappedNanos(tenantBudgetNanos)),
    numbers(requests, ({ promptTokens }) => promptTokens),
    numbers(requests, ({ promptFemtos }) => promptFemtos),
    numbers(requests, ({ outputFemtosPerToken }) => outputFemtosPerToken),
    numbers(requests, ({ wantOutputTokens }) => wantOutputTokens),
    numbers(requests, ({ minOutputTokens }) => minOutputTokens),
    numbers(requests, ({ boundIsExact }) => boundIsExact),
    numbers(requests, (request) => cappedNanos(largestCostNanos(request, request.wantOutputTokens))),
    numbers(requests, (request) => cappedNanos(largestCostNanos(request, Math.min(1, request.wantOutputTokens)))),
  ];
  return { name: 'admit', text: ADMIT, values };
}

const ADMIT = `SELECT * FROM admit(${Array.from({ length: 22 }, (_, index) => `$${index + 1}`).join(',')})`;

function largestCostNanos({ promptFemtos, outputFemtosPerToken }: AdmitRequest, outputTokens: number): bigint {
  return ceilDiv(promptFemtos + BigInt(outputTokens) * outputFemtosPerToken, FEMTOS_PER_NANO);
}

export function admitResult(row: Row): AdmitResult | RangeError {
  const [, code, scope, retryMs, holdNanos, outputTokens, requestsLeft, requestsResetMs, tokensLeft, tokensResetMs] =
    row;
  if (code === 'id_used') return new RangeError('this id belongs to another or an ended hold');
  const limits = {
    requestsRemaining: Number(requestsLeft),
    requestsResetMs: Number(requestsResetMs),
    tokensRemaining: Number(tokensLeft),
    tokensResetMs: Number(tokensResetMs),
  };
  if (code === 'held')
    return { kind: 'held', holdNanos: BigInt(holdNanos!), outputTokens: Number(outputTokens), limits };
  return {
    kind: 'refused',
    reason: code as Refusal,
    scope: scope as 'key' | 'tenant',
    retryAfterMs: retryMs === null ? null : Number(retryMs),
    limits,
  };
}
