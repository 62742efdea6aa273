import type { TokenCounts, UsageDraft } from '@tollgate/contracts';

/** What a hold knows of the request that runs under it. */
export interface RunningHold {
  /** With the model and the price of what serves it, once that is recorded. */
  draft: UsageDraft;
  /** What its last heartbeat recorded of a stream. Null: nothing was delivered until then, or it is not a stream. */
  delivered: (TokenCounts & { costNanos: bigint }) | null;
}

/** One hold, for the reports of reconcile. */
export interface HoldView {
  id: string;
  state: 'pending' | 'settled';
  /** The held amount, or the cost after settlement. */
  nanos: bigint;
  /**
   * Milliseconds since the last heartbeat, or since the request ended, by the store's clock. Negative: that time is in
   * the future.
   */
  quietMs: number;
  /** Only if it was asked for, and the hold is pending. */
  running?: RunningHold;
}

export interface HoldsQuery {
  tenantId: string;
  /** Only ids greater than this one. */
  after?: string;
  limit: number;
  /** Also reads what is known of the requests that run. */
  withRunning?: boolean;
}

/** From the draft and what was delivered, both as the stores keep them: JSON. */
export function runningHold(draftJson: string, deliveredJson: string | null): RunningHold {
  const draft = JSON.parse(draftJson) as UsageDraft;
  if (deliveredJson === null) return { draft, delivered: null };
  const { promptTokens, cachedTokens, completionTokens, costNanos, ...served } = JSON.parse(
    deliveredJson,
  ) as TokenCounts & { costNanos: string } & Partial<Pick<UsageDraft, 'model' | 'price'>>;
  return {
    draft: { ...draft, ...served },
    delivered: { promptTokens, cachedTokens, completionTokens, costNanos: BigInt(costNanos) },
  };
}
