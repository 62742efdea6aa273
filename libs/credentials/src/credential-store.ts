import type { CredentialKind } from '@tollgate/contracts';

/** What the edge must know of a credential to let a request in. Never the value, only its hash. */
export interface CredentialRecord {
  /** SHA-256 of the value, hex. */
  hash: string;
  kind: CredentialKind;
  /** `key_…` or `tok_…` */
  id: string;
  tenantId: string;
  /** Plan of the tenant; with `profile` it names the limits and the catalog in tollgate.yaml. */
  plan: string;
  /** Key profile; empty for a token. */
  profile: string;
  /** Scopes of a token; empty for a key. */
  scopes: readonly string[];
  /** Epoch milliseconds; null: never. */
  expiresAtMs: number | null;
  revokedAtMs: number | null;
  /** Counts up with each change of this credential: an older record never replaces a newer one. */
  version: number;
}

/**
 * The credential seam: where auth projects to and the gateway reads from. Two implementations pass one conformance
 * suite (`credentials.suite.ts`): Postgres + LISTEN/NOTIFY, and Redis + pub/sub.
 *
 * A record in memory is never older than what was committed one second ago, in every process: notifications bring
 * changes at once, and a version check at least every second finds those whose notification was lost. When the store
 * cannot be reached for about as long, look-ups are refused, as nobody can say what was revoked meanwhile; without the
 * store of the admission beside it nothing runs anyway. The check catches up as soon as it is back.
 */
export abstract class CredentialStore {
  /**
   * Writes records (upsert by hash, only if `version` is newer) and tells every process. Durable when it returns.
   * @param readAtMs when they were read from the books, by the books' clock: a store that forgets credentials refuses
   * what is so old that it may be from before that (UnavailableError: read again)
   */
  abstract put(records: readonly CredentialRecord[], readAtMs?: number): Promise<void>;
  /**
   * From memory when it is there, synchronously: the hot path awaits nothing. Unknown values are not remembered in any
   * way that could grow. Rejects with UnavailableError when the store must be asked and does not answer in time.
   */
  abstract lookup(hash: string): CredentialRecord | null | Promise<CredentialRecord | null>;
  /**
   * Of the one service that can write all records anew (auth). A store that can lose them without its process noticing
   * otherwise calls it whenever they are gone, and until then refuses unknown values with UnavailableError. It may be
   * called several times, also after the start.
   */
  refillWith(_refill: () => Promise<unknown>): void {}
  /**
   * Lets a bounded number of credentials go that were revoked or expired long ago, in a store that would keep them for
   * ever. Whether there may be more of them: then ask again.
   */
  forget(): Promise<boolean> {
    return Promise.resolve(false);
  }
  abstract start(): Promise<void>;
  abstract close(): Promise<void>;
}
