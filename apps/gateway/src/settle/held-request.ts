import type { UsageDraft } from '@tollgate/contracts';

/** The part of an admitted request that its settlement needs. */
export interface HeldRequest {
  readonly draft: UsageDraft;
  readonly hold: {
    readonly promptTokens: number;
    readonly maxTokensPerChoice: number;
    readonly storeEpoch: string | undefined;
  };
  readonly request: { readonly choices: number };
  /** Names of the backends that may have begun it, in the order asked. */
  readonly begun: readonly string[];
  /** For log lines. */
  readonly logged: object;
}
