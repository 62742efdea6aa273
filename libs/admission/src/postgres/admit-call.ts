import type { AdmitRequest, ClaimLimits } from '../admission-store';
import { largestCostNanos } from '../amounts';
import type { Call } from './connections';
import { LIMITS } from './limits-parameters';
import { NamedCall, type Parameter } from './named-call';

const SCALARS = [
  ['p_now_ms', 'bigint'],
  ['p_lease_ms', 'bigint'],
] as const;

const PARAMETERS: readonly Parameter<AdmitRequest>[] = [
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
];

/** The call of functions/admit.sql. */
const ADMIT = new NamedCall<AdmitRequest>('admit_batch', SCALARS, PARAMETERS);

/** The same for requests of which some have a claim. */
const ADMIT_CLAIMING = new NamedCall<AdmitRequest>(
  'admit_batch',
  [...SCALARS, ['p_keep_ms', 'bigint'], ['p_max_claims', 'bigint']],
  [
    ...PARAMETERS,
    ['p_claim', 'text', ({ claim }) => claim?.id ?? ''],
    ['p_fingerprint', 'text', ({ claim }) => claim?.fingerprint ?? ''],
  ],
  'admit_claiming',
);

export function admitCall(
  requests: readonly AdmitRequest[],
  nowMs: number | null,
  leaseMs: number,
  { keepMs, maxClaims }: ClaimLimits,
): Call {
  if (!requests.some(({ claim }) => claim)) return ADMIT.of(requests, [nowMs, leaseMs]);
  return ADMIT_CLAIMING.of(requests, [nowMs, leaseMs, keepMs, maxClaims]);
}
