/** Takes 7 ms at 55 ns a byte. */
const MAX_BYTES_PER_TURN = 128 * 1024;
/**
 * Heartbeats wait for a count. This is much less than their interval, so the heartbeats of all other streams stay in
 * time.
 */
const MAX_WAIT_MS = 500;

interface Waiting {
  bytes: number;
  sinceMs: number;
  resolve: (granted: boolean) => void;
}

/**
 * Limits how much text is counted for the records of all running streams in one turn of the event loop. Further counts
 * wait for the next turns, first come, first served, so that other work of the process continues in between. A running
 * stream waits with at most one count.
 */
export class TokenizerThrottle {
  private left = MAX_BYTES_PER_TURN;
  private waiting: Waiting[] = [];

  constructor(private readonly maxWaitMs = MAX_WAIT_MS) {}

  /**
   * Resolves with true in the turn in which the bytes may be counted, or with false when that was not in time. The
   * first count of a turn is always granted, whatever its size, so that a long prompt gets its turn too.
   */
  take(bytes: number): Promise<boolean> {
    if (this.waiting.length === 0 && this.grant(bytes)) return Promise.resolve(true);
    return new Promise((resolve) => this.waiting.push({ bytes, sinceMs: performance.now(), resolve }));
  }

  private grant(bytes: number): boolean {
    if (this.left === MAX_BYTES_PER_TURN) setImmediate(() => this.nextTurn());
    else if (bytes > this.left) return false;
    this.left -= bytes;
    return true;
  }

  /**
   * Counts that are granted here run before the event loop goes on, because promises are resolved at the end of each of
   * its callbacks.
   */
  private nextTurn(): void {
    this.left = MAX_BYTES_PER_TURN;
    const oldestMs = performance.now() - this.maxWaitMs;
    let done = 0;
    for (const { bytes, sinceMs, resolve } of this.waiting) {
      const inTime = sinceMs >= oldestMs;
      if (inTime && !this.grant(bytes)) break;
      resolve(inTime);
      done += 1;
    }
    this.waiting = this.waiting.slice(done);
  }
}
