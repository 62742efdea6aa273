// The claims of Idempotency-Keys, in the operations of the admission store (admission-store.ts).

/**
 * An Idempotency-Key that a request takes with its hold. While the hold is pending, or once it was settled with its
 * claim, no other request of the tenant is admitted with the same claim.
 */
export interface Claim {
  /** A hash over the inference key and its Idempotency-Key: unique, and not to be guessed from. */
  id: string;
  /** The fingerprint of the body. The store keeps it for `recall` and does not read it. */
  fingerprint: string;
}

/** What a repeat of a settled request gets. */
export interface ClaimAnswer {
  claimId: string;
  /** Opaque text. Null: too large to be kept, so a repeat learns only that the request was settled. */
  sealed: string | null;
}

/** Asks for the state of a claim. */
export interface RecallRequest {
  tenantId: string;
  claimId: string;
}

/**
 * - `free`: nobody has the claim. It was never taken, its request ended without its own settlement (void, or
 *   expired), or it is older than `ClaimLimits.keepMs`.
 * - `running`: the hold of its request is pending.
 * - `settled`: its request was settled. `answerChars` is the length of the sealed answer. Null: it was not kept, or was
 *   dropped for newer ones.
 */
export type RecallResult =
  | { kind: 'free' }
  | { kind: 'running'; fingerprint: string; ageMs: number }
  | { kind: 'settled'; fingerprint: string; answerChars: number | null };

/** Asks for the sealed answer of a claim that `recall` found settled. */
export interface AnswerRequest extends RecallRequest {
  /** Of the body that is to get the answer. */
  fingerprint: string;
  /** As `recall` found it. Calls are bounded by it. */
  answerChars: number;
}

/** How much a store keeps of claims. */
export interface ClaimLimits {
  /** A settled claim is forgotten after this time. */
  keepMs: number;
  /** The most claims of one tenant. Beyond it the oldest are forgotten, but never one of a running request. */
  maxClaims: number;
  /**
   * The characters of all sealed answers of one tenant. Beyond it the oldest answers are dropped; their claims stay.
   */
  maxAnswerChars: number;
}
