import type { Outcome, RequestLife, TokenCounts, UsageDraft, UsageEvent } from '@tollgate/contracts';

const NANOS_PER_UNIT = 1_000_000_000;

/**
 * The usage event of a request that ends now. The charge is the cost of the tokens, at most the hold. The excess is the
 * operator's loss: `overrunNanos`.
 */
export function toUsageEvent(
  draft: UsageDraft,
  {
    tokens,
    reasoningTokens = 0,
    cost,
    estimated,
    outcome,
    backend,
    life,
    holdNanos,
    endedMs,
  }: {
    tokens: TokenCounts;
    /** A part of the completion tokens, as the backend reports it. */
    reasoningTokens?: number;
    /** The cost of the tokens at the price of the draft, in nanos. */
    cost: bigint;
    estimated: boolean;
    outcome: Outcome;
    backend?: string | undefined;
    life?: RequestLife;
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
    ...(reasoningTokens > 0 && { reasoningTokens }),
    costNanos: String(charged),
    overrunNanos: String(cost - charged),
    estimated,
    outcome,
    ...(backend !== undefined && { backend }),
    ...(life !== undefined && { life }),
    endedAt: new Date(endedMs).toISOString(),
  };
}

/**
 * Parts of the counts by name, as a backend reported them. They are shown to the client. Only the reasoning tokens are
 * recorded.
 */
export interface AnswerDetails {
  prompt?: Readonly<Record<string, number>> | undefined;
  completion?: Readonly<Record<string, number>> | undefined;
}

/** The field `cost`: what is charged, in currency units. A double is exact to the nano below nine million units. */
const costField = (nanos: string): number => Number(nanos) / NANOS_PER_UNIT;

/**
 * `usage` as the client gets it. The completion tokens of embeddings are 0. `withCost`: it says what the request costs.
 */
export function toUsageField(
  event: UsageEvent,
  { prompt, completion }: AnswerDetails,
  withCost: boolean,
): Record<string, unknown> {
  const { promptTokens, cachedTokens, completionTokens } = event;
  const ofPrompt = cachedTokens > 0 ? { ...prompt, cached_tokens: cachedTokens } : prompt;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(ofPrompt && { prompt_tokens_details: ofPrompt }),
    ...(completion && { completion_tokens_details: completion }),
    ...(withCost && { cost: costField(event.costNanos) }),
  };
}
