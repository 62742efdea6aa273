import { ceilDiv, FEMTOS_PER_NANO } from '@tollgate/contracts';
import type { AdmitRequest, AdmitResult, Refusal } from '../admission-store';
import { amount, budget, nanos } from './json-arguments';

/** What `admit` answers before the results: whether the tenant was new to the store, and the life in which its holds are. */
const HEADER_VALUES = 2;
const VALUES_PER_RESULT = 9;

/** The arguments of the function `admit` (lua/4_admit.lua). */
export function admitArguments(
  requests: readonly AdmitRequest[],
  now: number | '',
  leaseMs: number,
  mustBeKnown: boolean,
): (string | number)[] {
  const drafts = requests.map(({ draft }) => JSON.stringify(draft));
  return [now, leaseMs, mustBeKnown ? '1' : '0', JSON.stringify(requests.map(toArray)), ...drafts];
}

export type AdmitReply = { known: false } | { known: true; created: boolean; results: (AdmitResult | RangeError)[] };

export function readAdmitReply(reply: unknown): AdmitReply {
  const values = reply as (string | number | null)[];
  if (values[0] === 'unknown') return { known: false };
  const results: (AdmitResult | RangeError)[] = [];
  const life = values[1] as string;
  for (let at = HEADER_VALUES; at < values.length; at += VALUES_PER_RESULT) results.push(readResult(values, at, life));
  return { known: true, created: values[0] === 1, results };
}

function toArray(request: AdmitRequest): unknown[] {
  const { draft, keyLimits, tenantLimits, wantOutputTokens } = request;
  return [
    draft.id,
    draft.keyId,
    keyLimits.requestsPerMinute,
    keyLimits.tokensPerMinute,
    keyLimits.concurrency,
    tenantLimits.requestsPerMinute,
    tenantLimits.tokensPerMinute,
    tenantLimits.concurrency,
    budget(request.keyBudgetNanos),
    budget(request.tenantBudgetNanos),
    request.promptTokens,
    amount(request.promptFemtos),
    amount(request.outputFemtosPerToken),
    wantOutputTokens,
    request.minOutputTokens,
    request.boundIsExact,
    nanos(largestCostNanos(request, wantOutputTokens)),
    nanos(largestCostNanos(request, Math.min(1, wantOutputTokens))),
  ];
}

function largestCostNanos({ promptFemtos, outputFemtosPerToken }: AdmitRequest, outputTokens: number): bigint {
  return ceilDiv(promptFemtos + BigInt(outputTokens) * outputFemtosPerToken, FEMTOS_PER_NANO);
}

function readResult(values: readonly (string | number | null)[], at: number, life: string): AdmitResult | RangeError {
  const code = values[at] as string;
  if (code === 'id_used') return new RangeError('this id belongs to another or an ended hold');
  const limits = {
    requestsRemaining: values[at + 5] as number,
    requestsResetMs: values[at + 6] as number,
    tokensRemaining: values[at + 7] as number,
    tokensResetMs: values[at + 8] as number,
  };
  if (code === 'held') {
    return { kind: 'held', holdNanos: BigInt(values[at + 3]!), outputTokens: values[at + 4] as number, limits, life };
  }
  return {
    kind: 'refused',
    reason: code as Refusal,
    scope: values[at + 1] as 'key' | 'tenant',
    retryAfterMs: values[at + 2] as number | null,
    limits,
  };
}
