/**
 * The part of a lease that is kept back: for what is on its way when it is nearly over, and for clocks that do not run
 * alike. A second of ten.
 */
const MARGIN_PART = 1 / 10;

/**
 * Until when a hold lives for sure, by a clock that nobody sets: the store lets it live for a lease from when it admits
 * it, or takes in a sign of life, and neither is before the call was sent. Past it somebody else may have settled the
 * hold at what was recorded, so nothing more may be delivered under it.
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

  /** The store has acknowledged a sign of life that was not sent before `sentMs`. */
  renew(sentMs: number): void {
    this.untilMs = Math.max(this.untilMs, sentMs + this.leaseMs * (1 - MARGIN_PART));
  }
}
