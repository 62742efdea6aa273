import { Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import { logger, settlesWithin } from '@tollgate/runtime';

/** Tenants of one call to the store. */
const PAGE_TENANTS = 200;
/** Of more tenants the sum would be too old. */
const MAX_TENANTS = 50_000;
/** From the end of one sum to the beginning of the next. Nothing is read while nobody asks. */
const REST_MS = 500;
/** A longer sum goes on, and the former one is answered. */
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
@Injectable()
export class HeldSum {
  private latest: Held | null = null;
  private walk: Promise<void> | null = null;
  private endedAtMs = -Infinity;
  private isKnown = true;

  constructor(private readonly admission: AdmissionStore) {}

  /** Null: not known, because the store does not answer, or has too many tenants. */
  async now(): Promise<Held | null> {
    if (this.walk === null && performance.now() - this.endedAtMs >= REST_MS)
      this.walk = this.update().finally(() => {
        this.walk = null;
        this.endedAtMs = performance.now();
      });
    if (this.walk !== null) await settlesWithin(WAIT_MS, this.walk);
    return this.latest;
  }

  private async update(): Promise<void> {
    try {
      this.latest = await this.sum();
      this.isKnown = true;
    } catch (error) {
      this.latest = null;
      // One line for each time that the store goes away.
      if (this.isKnown)
        logger('billing').warn({ reason: (error as Error).message }, 'what running requests hold is not known');
      this.isKnown = false;
    }
  }

  private async sum(): Promise<Held | null> {
    const held: Held = { nanos: 0n, requests: 0 };
    let after: string | undefined;
    for (let tenants = 0; tenants < MAX_TENANTS; tenants += PAGE_TENANTS) {
      const page = await this.admission.snapshot({ limit: PAGE_TENANTS, ...(after !== undefined && { after }) });
      for (const { unreadable, pendingNanos, pendingHolds } of page) {
        if (unreadable !== undefined) continue;
        held.nanos += pendingNanos;
        held.requests += pendingHolds;
      }
      if (page.length < PAGE_TENANTS) return held;
      after = page.at(-1)!.tenantId;
    }
    return null;
  }
}
