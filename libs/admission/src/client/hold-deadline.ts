/**
 * The part of a lease that is kept back, for delays on the network and for clocks that run at different speeds. A
 * second of ten.
 */
const MARGIN_PART = 1 / 10;

/**
 * The time until which a hold certainly lives, by the monotonic clock. The store keeps the hold for a lease after it
 * admits it or records a heartbeat, and both happen after the call was sent. Past this time the sweep may have settled
 * the hold at what was recorded, so nothing more may be delivered under it.
 */
export class HoldDeadline {
  private untilMs: number;

  /** @param sentMs before the admission was sent, by performance.now() */
  constructor(
    sentMs: number,
    private readonly leaseMs: number,
  ) {
    this.untilMs = sentMs + leaseMs * (1 - MARGIN_PART);
  }

  get passed(): boolean {
    return performance.now() >= this.untilMs;
  }

  /** The store has acknowledged a heartbeat that was sent at `sentMs` or later. */
  renew(sentMs: number): void {
    this.untilMs = Math.max(this.untilMs, sentMs + this.leaseMs * (1 - MARGIN_PART));
  }
}
