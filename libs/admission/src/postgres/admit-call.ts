import type { AdmitRequest } from '../admission-store';
import { largestCostNanos } from '../amounts';
import type { Call } from './connections';
import { LIMITS } from './limits-parameters';
import { NamedCall } from './named-call';

/** The call of functions/admit.sql. */
const ADMIT = new NamedCall<AdmitRequest>(
  'admit',
  [
    ['p_now_ms', 'bigint'],
    ['p_lease_ms', 'bigint'],
  ],
  [
    ['p_id', 'text', ({ draft }) => draft.id],
    ['p_tenant_id', 'text', ({ draft }) => draft.tenantId],
    ['p_key_id', 'text', ({ draft }) => draft.keyId],
    ['p_draft', 'json', ({ draft }) => draft],
    ...LIMITS,
    ['p_prompt_tokens', 'bigint', ({ promptTokens }) => promptTokens],
    ['p_prompt_femtos', 'numeric', ({ promptFemtos }) => promptFemtos],
    ['p_output_femtos', 'numeric', ({ outputFemtosPerToken }) => outputFemtosPerToken],
    ['p_want_tokens', 'bigint', ({ wantOutputTokens }) => wantOutputTokens],
    ['p_min_tokens', 'bigint', ({ minOutputTokens }) => minOutputTokens],
    ['p_bound_is_exact', 'boolean', ({ boundIsExact }) => boundIsExact],
    ['p_want_nanos', 'bigint', (request) => largestCostNanos(request, request.wantOutputTokens)],
    ['p_least_nanos', 'bigint', (request) => largestCostNanos(request, Math.min(1, request.wantOutputTokens))],
  ],
);

export const admitCall = (requests: readonly AdmitRequest[], nowMs: number | null, leaseMs: number): Call =>
  ADMIT.of(requests, [nowMs, leaseMs]);
