import type { FailedAttempt, UsageDraft } from '@tollgate/contracts';
import type { AdmittedUnder } from './request-life';

/** The part of an admitted request that its settlement needs. */
export interface HeldRequest {
  readonly draft: UsageDraft;
  readonly hold: {
    readonly prompt: { readonly upperBound: number };
    readonly maxTokensPerChoice: number;
    readonly storeEpoch: string | undefined;
    readonly holdNanos: bigint;
    readonly admittedUnder: AdmittedUnder;
  };
  readonly request: { readonly choices: number };
  /** Names of the backends that may have begun it, in the order asked. */
  readonly begun: readonly string[];
  /** The attempts at backends that failed, in the order asked. Null: none did. */
  readonly failed: readonly FailedAttempt[] | null;
  /** The model that it asked for, if a fallback serves it. */
  readonly asked: string | null;
  /** The part of what is held in the end that may be charged. */
  payable(heldNanos: bigint): bigint;
  /** When it was admitted, by `performance.now()`. */
  readonly admittedAtMs: number;
  /** For log lines. */
  readonly logged: object;
}
