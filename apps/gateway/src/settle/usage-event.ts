import { costNanos, type Outcome, type TokenCounts, type UsageDraft, type UsageEvent } from '@tollgate/contracts';

/**
 * The usage event of a request that ends now. The charge is the cost of the tokens, at most the hold. The excess is the
 * operator's loss: `overrunNanos`.
 */
export function toUsageEvent(
  draft: UsageDraft,
  {
    tokens,
    cost = costNanos(tokens, draft.price),
    estimated,
    outcome,
    backend,
    holdNanos,
    endedMs,
  }: {
    tokens: TokenCounts;
    /** Of the tokens, where it is known. */
    cost?: bigint;
    estimated: boolean;
    outcome: Outcome;
    backend?: string | undefined;
    holdNanos: bigint;
    endedMs: number;
  },
): UsageEvent {
  const charged = cost > holdNanos ? holdNanos : cost;
  return {
    ...draft,
    promptTokens: tokens.promptTokens,
    cachedTokens: tokens.cachedTokens,
    completionTokens: tokens.completionTokens,
    costNanos: String(charged),
    overrunNanos: String(cost - charged),
    estimated,
    outcome,
    ...(backend !== undefined && { backend }),
    endedAt: new Date(endedMs).toISOString(),
  };
}

/** `usage` as the client gets it. The completion tokens of embeddings are 0. */
export function toUsageField(event: UsageEvent): Record<string, unknown> {
  const { promptTokens, cachedTokens, completionTokens } = event;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens > 0 ? { prompt_tokens_details: { cached_tokens: cachedTokens } } : {}),
  };
}
