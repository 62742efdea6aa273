import type { AdmissionClient, ExpectedEnd } from '@tollgate/admission';
import { logger } from '@tollgate/runtime';
import { LRUCache } from 'lru-cache';

/** Tenants whose expected ends are kept. */
const MAX_TENANTS = 10_000;
/** How long one store answer serves all of a tenant's refusals. */
const KEPT_MS = 1_000;
const SHORTEST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

interface Told {
  readonly askedAtMs: number;
  /** Null: the store did not answer. */
  readonly ends: Promise<readonly ExpectedEnd[] | null>;
}

/**
 * Estimates when the next of a tenant's or a key's running requests will end, on any gateway. The admission store knows
 * the mean length of each model's requests and the age of each hold. It is asked only for requests that wait for
 * running ones, and for each tenant once a second at most.
 */
export class ExpectedEnds {
  private readonly told = new LRUCache<string, Told>({ max: MAX_TENANTS });
  private storeAnswers = true;

  constructor(private readonly client: Pick<AdmissionClient, 'expectedEnds'>) {}

  /**
   * Milliseconds, from 1 s to 60 s. Null: no length of a running request is known. Never rejects.
   * @param keyId null: of all keys of the tenant
   * @param nowMs by `performance.now()`
   */
  async soonestMs(
    { tenantId, keyId }: { tenantId: string; keyId: string | null },
    nowMs: number,
  ): Promise<number | null> {
    let told = this.told.get(tenantId);
    if (!told || nowMs - told.askedAtMs >= KEPT_MS) {
      told = { askedAtMs: nowMs, ends: this.ask(tenantId) };
      this.told.set(tenantId, told);
    }
    const ends = (await told.ends)?.filter((end) => keyId === null || end.keyId === keyId) ?? [];
    if (ends.length === 0) return null;
    const leftMs = Math.min(...ends.map(({ endsInMs }) => endsInMs)) - (nowMs - told.askedAtMs);
    return Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, Math.ceil(leftMs)));
  }

  private async ask(tenantId: string): Promise<readonly ExpectedEnd[] | null> {
    try {
      const ends = await this.client.expectedEnds(tenantId);
      this.storeAnswers = true;
      return ends;
    } catch (error) {
      // Once, because every refusal would say so. The refusal itself has an estimate of the store.
      if (this.storeAnswers)
        logger('gateway').warn(
          { reason: (error as Error).message },
          'estimating the end of running requests failed; Retry-After uses the mean over all models',
        );
      this.storeAnswers = false;
      return null;
    }
  }
}
