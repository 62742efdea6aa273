import { randomUUID } from 'node:crypto';
import type { RedisLink } from '@tollgate/redis';
import { logger } from '@tollgate/runtime';
import { KEYS } from './keys';

/** A filler that writes nothing for this time has died or hangs, and another one takes over. */
export const FILLER_LEASE_MS = 3_000;
export const FILL_AGAIN_MS = 1_000;

/** Writes all credentials again. */
export type Refill = () => Promise<unknown>;

/**
 * Fills a store that is incomplete, or may be. One process fills it: the holder of the lease. Each write renews the
 * lease.
 * 1. `begin_filling` returns the generation of the store, and its server.
 * 2. All credentials are read from the books after that, and put.
 * 3. `end_filling` marks the store complete if it still has this generation and is still on this server. After a
 *    failover, it may lack the last writes, so it is filled again.
 * So a complete store has every credential in at least the version that was committed when the filling began. The
 * process that commits a later version puts it, and repeats a failed put (auth's projection). A late put of an older
 * version finds the newer one.
 */
export class Filler {
  /** The id of this process, in each `put`. */
  readonly id = randomUUID();
  private refill: Refill | undefined;
  private filling: Promise<void> | undefined;
  private notBeforeMs = 0;

  constructor(
    private readonly link: RedisLink,
    /** The state of the store may have changed. */
    private readonly done: () => void,
  ) {}

  fillWith(refill: Refill): void {
    this.refill = refill;
  }

  /** Called when the store may be incomplete. Returns at once. */
  notComplete(): void {
    if (!this.refill || this.filling || performance.now() < this.notBeforeMs) return;
    this.filling = this.fill(this.refill).finally(() => {
      this.filling = undefined;
      this.done();
    });
  }

  /** Never rejects: a later check tries again. */
  private async fill(refill: Refill): Promise<void> {
    try {
      const lease = [randomUUID(), this.id, FILLER_LEASE_MS];
      const begun = await this.link.one({ function: 'begin_filling', keys: KEYS, args: lease });
      if (begun === null) return void (this.notBeforeMs = performance.now() + FILL_AGAIN_MS / 2);
      await refill();
      const ended = await this.link.one({ function: 'end_filling', keys: KEYS, args: begun as string[] });
      if (ended === 1) logger('credentials').info('credential store: all credentials were written again');
    } catch (error) {
      logger('credentials').warn({ reason: (error as Error).message }, 'credential store: filling failed; retrying');
      this.notBeforeMs = performance.now() + FILL_AGAIN_MS;
    }
  }
}
