import { DEFAULT_LEASE_MS, type AdmitRequest } from '@tollgate/admission';
import { FEMTOS_PER_NANO, newId, type PriceStamp, type TokenCounts, type UsageDraft } from '@tollgate/contracts';

const WIDE = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 };

/** A request that a gateway believes to be running. */
export interface Running {
  request: AdmitRequest;
  draft: UsageDraft;
  gateway: number;
  /** Time of its last heartbeat. */
  aliveMs: number;
  promptTokens: number;
  holdNanos: bigint;
  storeEpoch: string | undefined;
  /** The store was emptied since. The request continues up to its hold, and its gateway publishes its event itself. */
  lost: boolean;
}

export interface Candidate {
  tenantId: string;
  keyId: string;
  price: PriceStamp;
  /** The default budgets of the configuration, of the key and of the tenant. */
  budgets: { key: bigint | null; tenant: bigint | null };
  nowMs: number;
}

export function admitRequest(
  { tenantId, keyId, price, budgets, nowMs }: Candidate,
  { prompt, want, least }: { prompt: number; want: number; least: number },
): AdmitRequest {
  const startedAt = new Date(nowMs).toISOString();
  return {
    draft: { id: newId('req'), tenantId, keyId, model: 'sim', kind: 'chat', stream: true, price, startedAt },
    tenantLimits: WIDE,
    keyLimits: WIDE,
    keyBudgetNanos: budgets.key,
    tenantBudgetNanos: budgets.tenant,
    promptTokens: prompt,
    promptFemtos: BigInt(prompt) * BigInt(price.inputFemtos),
    outputFemtosPerToken: BigInt(price.outputFemtos),
    wantOutputTokens: want,
    minOutputTokens: want === 0 ? 0 : Math.max(1, Math.min(want, least)),
    boundIsExact: true,
  };
}

/** This many tokens of output, or as many as the hold covers. */
export function covered({ holdNanos, promptTokens, draft: { price } }: Running, tokens: number): TokenCounts {
  const femtos = holdNanos * FEMTOS_PER_NANO - BigInt(promptTokens) * BigInt(price.inputFemtos);
  const most = price.outputFemtos === '0' ? tokens : Number(femtos / BigInt(price.outputFemtos));
  return { promptTokens, cachedTokens: 0, completionTokens: Math.min(tokens, most) };
}

/**
 * The credit that a key of the tenant (null: all keys) certainly holds. The store may count more, because expired holds
 * may not be swept yet.
 */
export function heldNanos(running: Iterable<Running>, tenantId: string, keyId: string | null, nowMs: number): bigint {
  return [...running]
    .filter(({ draft }) => draft.tenantId === tenantId && (keyId === null || draft.keyId === keyId))
    .filter(({ aliveMs, lost }) => !lost && aliveMs + DEFAULT_LEASE_MS > nowMs)
    .reduce((sum, { holdNanos }) => sum + holdNanos, 0n);
}
