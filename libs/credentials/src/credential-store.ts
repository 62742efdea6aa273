import type { CredentialKind } from '@tollgate/contracts';

/** What the gateway must know of a credential to admit a request. Contains the hash, never the value. */
export interface CredentialRecord {
  /** SHA-256 of the value, hex. */
  hash: string;
  kind: CredentialKind;
  /** `key_…` or `tok_…` */
  id: string;
  tenantId: string;
  /** The plan of the tenant. With `profile` it selects the limits and models in tollgate.yaml. */
  plan: string;
  /** The key's profile; empty for a token. */
  profile: string;
  /** The token's scopes; empty for a key. */
  scopes: readonly string[];
  /** The only models of its profile that the key may use. Null, and absent in older records: all of them. */
  models?: readonly string[] | null;
  /** Epoch milliseconds; null: never. */
  expiresAtMs: number | null;
  revokedAtMs: number | null;
  /** Incremented by each change of this credential. An older record never replaces a newer one. */
  version: number;
}

/**
 * The credential seam: auth writes its projection here, and the gateway reads it. Two implementations pass one
 * conformance suite (`credentials.suite.ts`): PostgreSQL + LISTEN/NOTIFY, and Redis + pub/sub.
 * In every process, a record in memory is never older than what was committed a second ago. Notifications bring changes
 * at once, and a version check at least every second finds changes whose notification was lost. If the store cannot be
 * reached for about that long, look-ups are refused, because revocations might be missing. (Without the admission store
 * beside it, no request runs anyway.) The check catches up as soon as the store is back.
 */
export abstract class CredentialStore {
  /**
   * Writes records (upsert by hash, only if `version` is newer) and notifies every process. Durable when it returns.
   * @param readAtMs when they were read from the books, by the books' clock. A store that forgets credentials refuses
   * records that are old enough to predate a forgotten one (UnavailableError: read again).
   */
  abstract put(records: readonly CredentialRecord[], readAtMs?: number): Promise<void>;
  /**
   * Answers synchronously from memory if possible, so the hot path awaits nothing. Unknown values never occupy growing
   * memory. Rejects with UnavailableError when the store must be asked and does not answer in time.
   */
  abstract lookup(hash: string): CredentialRecord | null | Promise<CredentialRecord | null>;
  /**
   * For the one service that can write all records again (auth). A store that can lose them unnoticed calls it whenever
   * they are gone. Until then it refuses unknown values with UnavailableError. May be called several times, also after
   * the start.
   */
  refillWith(_refill: () => Promise<unknown>): void {}
  /**
   * Forgets a bounded number of credentials that were revoked or expired long ago, in a store that would otherwise keep
   * them forever. True: there may be more, so call it again.
   */
  forget(): Promise<boolean> {
    return Promise.resolve(false);
  }
  abstract start(): Promise<void>;
  abstract close(): Promise<void>;
}
