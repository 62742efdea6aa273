import { AdmissionStore } from '@tollgate/admission';
import { logger, settlesWithin } from '@tollgate/runtime';

/** Tenants of one call to the store. */
const PAGE_TENANTS = 200;
/** With more tenants, the sum would be too old. */
const MAX_TENANTS = 50_000;
/**
 * Pause between sums: `REST_MS`, or 20 times the last sum's duration if that is longer, because the same store admits
 * requests. Nothing is read while nobody asks.
 */
const REST_MS = 5_000;
const REST_OF_WALKS = 20;
/** A sum that takes longer continues, and the caller gets the former one. */
const WAIT_MS = 500;

/** What running requests hold. */
export interface Held {
  nanos: bigint;
  requests: number;
}

/**
 * The credit that the running requests of all tenants hold. The store has no such sum, so it is added up over the
 * tenants, by one walk at a time.
 */
export class HeldSum {
  private latest: Held | null = null;
  private walk: Promise<void> | null = null;
  private restsUntilMs = -Infinity;
  private isKnown = true;

  constructor(
    private readonly admission: AdmissionStore,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Null: not known, because the store does not answer, has too many tenants, or has one that cannot be read. */
  async now(): Promise<Held | null> {
    if (this.walk === null && this.nowMs() >= this.restsUntilMs) {
      const beganAtMs = this.nowMs();
      this.walk = this.update().finally(() => {
        this.walk = null;
        const endedAtMs = this.nowMs();
        this.restsUntilMs = endedAtMs + Math.max(REST_MS, REST_OF_WALKS * (endedAtMs - beganAtMs));
      });
    }
    if (this.walk !== null) await settlesWithin(WAIT_MS, this.walk);
    return this.latest;
  }

  private async update(): Promise<void> {
    try {
      this.latest = await this.sum();
      this.isKnown = true;
    } catch (error) {
      this.latest = null;
      // One line for each time that it becomes unknown.
      if (this.isKnown)
        logger('billing').warn({ reason: (error as Error).message }, 'the sum of running holds is unknown');
      this.isKnown = false;
    }
  }

  private async sum(): Promise<Held | null> {
    const held: Held = { nanos: 0n, requests: 0 };
    let after: string | undefined;
    for (let tenants = 0; tenants < MAX_TENANTS; tenants += PAGE_TENANTS) {
      const page = await this.admission.snapshot({ limit: PAGE_TENANTS, ...(after !== undefined && { after }) });
      for (const { tenantId, unreadable, pendingNanos, pendingHolds } of page) {
        // Without this tenant the sum would be too small, and nobody could see that.
        if (unreadable !== undefined) throw new Error(`the state of ${tenantId} cannot be read: ${unreadable}`);
        held.nanos += pendingNanos;
        held.requests += pendingHolds;
      }
      if (page.length < PAGE_TENANTS) return held;
      after = page.at(-1)!.tenantId;
    }
    return null;
  }
}
