/** Further attempts per first attempt. */
const SHARE = 0.1;
/** Further attempts that a model with few requests may make at once, and that gather over quiet times. */
export const RESERVE = 20;
/** The reserve regains one attempt in this time, also without requests. */
const REFILL_MS = 1_000;

/**
 * The further attempts that a model's requests may make: 10 % of its requests, and a reserve of 20. So a model whose
 * backends all fail gets little more work than it was asked for.
 */
export class RetryBudget {
  private left = RESERVE;
  private refilledAtMs = 0;

  /** A request makes its first attempt. */
  first(): void {
    if (this.left < RESERVE) this.left += SHARE;
  }

  /** Whether one more attempt may be made now. If so, it is taken from the budget. */
  take(nowMs: number): boolean {
    this.left = Math.min(RESERVE, this.left + (nowMs - this.refilledAtMs) / REFILL_MS);
    this.refilledAtMs = nowMs;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
