/** Calls in a row whose clients left before an answer began, after which a backend counts as silent. */
const LEFT_IN_A_ROW = 5;
/** A silent backend gets one call in this time as if it were not. */
const TRIAL_EVERY_MS = 10_000;

/**
 * Whether a backend leaves calls without an answer until their clients leave. The circuit breaker does not count these
 * calls, because a client could leave early in order to open it for others. So silence only changes the order of
 * backends: a silent one gets a call if all others are silent, too, or cannot take it. Any answer that begins ends it:
 * the first byte of a body, or an error status. Times are those of `performance.now()`.
 */
export class Silence {
  private leftInARow = 0;
  private trialAtMs = 0;

  isSilent(nowMs: number): boolean {
    return this.leftInARow >= LEFT_IN_A_ROW && nowMs < this.trialAtMs;
  }

  /** A call begins. */
  began(nowMs: number): void {
    if (this.leftInARow >= LEFT_IN_A_ROW) this.trialAtMs = nowMs + TRIAL_EVERY_MS;
  }

  /** The client of a call that was sent has left, and its answer had not begun. */
  clientLeft(nowMs: number): void {
    this.leftInARow += 1;
    if (this.leftInARow === LEFT_IN_A_ROW) this.trialAtMs = nowMs + TRIAL_EVERY_MS;
  }

  /** An answer began. */
  answered(): void {
    this.leftInARow = 0;
  }
}
