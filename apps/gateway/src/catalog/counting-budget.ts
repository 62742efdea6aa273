/** 7 ms at 55 ns a byte. */
const MAX_BYTES_PER_TURN = 128 * 1024;

/** How much text may be counted for the records of running streams in one turn of the event loop, over all of them: what is left over waits a second. */
export class CountingBudget {
  private left = MAX_BYTES_PER_TURN;

  /** False: not in this turn. The first of a turn is always let through, so that a long prompt has its turn too. */
  take(bytes: number): boolean {
    if (this.left === MAX_BYTES_PER_TURN) setImmediate(() => (this.left = MAX_BYTES_PER_TURN));
    else if (bytes > this.left) return false;
    this.left -= bytes;
    return true;
  }
}
