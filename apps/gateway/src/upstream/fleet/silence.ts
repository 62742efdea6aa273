/** Calls in a row whose clients left before an answer began, after which a backend counts as silent. */
const LEFT_IN_A_ROW = 5;
/** A silent backend gets one call in this time as if it were not. */
const TRIAL_EVERY_MS = 10_000;

/**
 * Whether a backend leaves calls without an answer until their clients leave. The circuit breaker does not count these
 * calls, because a client could leave early in order to open it for others. So silence only changes the order of
 * backends: a silent one gets a call if all others are silent, too, or cannot take it. Any answer that begins ends it:
 * the first byte of a body, or an error status. Times are by `performance.now()`.
 */
export class Silence {
  private leftInARow = 0;
  private trialAtMs = 0;

  get isSilent(): boolean {
    return this.leftInARow >= LEFT_IN_A_ROW;
  }

  /** It is silent, and its next trial is not due. */
  comesLast(nowMs: number): boolean {
    return this.isSilent && nowMs < this.trialAtMs;
  }

  /** A call begins. */
  began(nowMs: number): void {
    if (this.isSilent) this.trialAtMs = nowMs + TRIAL_EVERY_MS;
  }

  /** The client of a call that was sent has left, and its answer had not begun. Returns true if the silence begins. */
  clientLeft(nowMs: number): boolean {
    this.leftInARow += 1;
    if (this.leftInARow !== LEFT_IN_A_ROW) return false;
    this.trialAtMs = nowMs + TRIAL_EVERY_MS;
    return true;
  }

  /** An answer began. Returns true if this ends the silence. */
  answered(): boolean {
    const ends = this.isSilent;
    this.leftInARow = 0;
    return ends;
  }
}
