import type { AdmitRequest, AdmitResult, ClaimLimits } from '../admission-store';
import { largestCostNanos } from '../amounts';
import { readAdmit, type Value } from '../store-answers';
import { amount, limitValues, nanos } from './json-arguments';

/**
 * The first values of a reply of `admit`: whether the tenant was new to the store, and the store epoch of its holds.
 */
const HEADER_VALUES = 2;
const VALUES_PER_RESULT = 13;

/** The arguments of the function `admit` (lua/05_admit.lua). */
export function admitArguments(
  requests: readonly AdmitRequest[],
  now: number | '',
  leaseMs: number,
  mustBeKnown: boolean,
  { keepMs, maxClaims }: ClaimLimits,
): (string | number)[] {
  const drafts = requests.map(({ draft }) => JSON.stringify(draft));
  const args = [now, leaseMs, mustBeKnown ? '1' : '0', JSON.stringify(requests.map(toArray)), ...drafts];
  return requests.some(({ claim }) => claim) ? [...args, keepMs, maxClaims] : args;
}

export type AdmitReply = { known: false } | { known: true; created: boolean; results: (AdmitResult | RangeError)[] };

export function readAdmitReply(reply: unknown, requests: readonly AdmitRequest[]): AdmitReply {
  const values = reply as Value[];
  if (values[0] === 'unknown') return { known: false };
  const storeEpoch = values[1] as string;
  const results = requests.map(({ claim }, i) => {
    const from = HEADER_VALUES + i * VALUES_PER_RESULT;
    return readAdmit(values.slice(from, from + VALUES_PER_RESULT), claim ? ofTenant(storeEpoch) : storeEpoch);
  });
  return { known: true, created: values[0] === 1, results };
}

/**
 * The epoch of the tenant alone. With it a hold that is lost in a failover counts as ended (`is_lost` in
 * lua/03_state.lua). Its claim is lost too, so a repeat runs again, and only that run may be charged.
 */
function ofTenant(storeEpoch: string): string {
  return storeEpoch.slice(0, storeEpoch.indexOf(':'));
}

function toArray(request: AdmitRequest): unknown[] {
  const { draft, wantOutputTokens, claim } = request;
  return [
    draft.id,
    draft.keyId,
    ...limitValues(request),
    request.promptTokens,
    amount(request.promptFemtos),
    amount(request.outputFemtosPerToken),
    wantOutputTokens,
    request.minOutputTokens,
    request.boundIsExact,
    nanos(largestCostNanos(request, wantOutputTokens)),
    nanos(largestCostNanos(request, Math.min(1, wantOutputTokens))),
    ...(claim ? [claim.id, claim.fingerprint] : []),
  ];
}
