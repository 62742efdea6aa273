import { randomUUID } from 'node:crypto';
import type { RedisLink } from '@tollgate/redis';
import { logger } from '@tollgate/runtime';
import { KEYS } from './keys';

/** Who fills and writes nothing for so long has died or hangs: another one takes over. */
export const FILLER_LEASE_MS = 3_000;
const FILL_AGAIN_MS = 1_000;

/** Writes all credentials anew. */
export type Refill = () => Promise<unknown>;

/**
 * Fills a store that is not complete, or not sure to be. Of all processes that can, one does: who holds the lease,
 * which every write renews.
 *
 *   1. `begin_filling` names the generation of the store; 2. all is read from the books after that, and put; 3.
 *      `end_filling` makes the store complete if it is still of this generation.
 *
 * So a complete store has of every credential at least the version that was committed when its filling began; what was
 * committed later is put by whoever committed it, and a put that failed is repeated (auth's projection). A late put of
 * an older version finds the newer one there.
 */
export class Filler {
  /** Of this process; in each `put`. */
  readonly id = randomUUID();
  private refill: Refill | undefined;
  private filling: Promise<void> | undefined;
  private notBeforeMs = 0;

  constructor(
    private readonly link: RedisLink,
    /** Something may be different now. */
    private readonly done: () => void,
  ) {}

  fillWith(refill: Refill): void {
    this.refill = refill;
  }

  /** Told that the store is not sure to be complete. Returns at once. */
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
      const generation = await this.link.one({ function: 'begin_filling', keys: KEYS, args: lease });
      if (generation === null) return void (this.notBeforeMs = performance.now() + FILL_AGAIN_MS / 2);
      await refill();
      const ended = await this.link.one({ function: 'end_filling', keys: KEYS, args: [generation as string] });
      if (ended === 1) logger('credentials').info('credential store: all credentials were written anew');
    } catch (error) {
      logger('credentials').warn(
        { reason: (error as Error).message },
        'credential store: could not be filled; trying on',
      );
      this.notBeforeMs = performance.now() + FILL_AGAIN_MS;
    }
  }
}
