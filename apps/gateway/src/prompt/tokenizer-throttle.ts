/** 7 ms at 55 ns a byte. */
const MAX_BYTES_PER_TURN = 128 * 1024;
/** Signs of life wait for it: much less than their interval, so that those of all other streams stay in time. */
const MAX_WAIT_MS = 500;

interface Waiting {
  bytes: number;
  sinceMs: number;
  resolve: (granted: boolean) => void;
}

/**
 * How much text may be counted for the records of running streams in one turn of the event loop, over all of them. What
 * is above it waits for the next turns, first come, first served, so that everything else that the process does goes on
 * in between; a running stream has at most one place there.
 */
export class TokenizerThrottle {
  private left = MAX_BYTES_PER_TURN;
  private waiting: Waiting[] = [];

  constructor(private readonly maxWaitMs = MAX_WAIT_MS) {}

  /**
   * Resolves in the turn in which so much may be counted; false: not in time. The first of a turn is always let
   * through, so that a long prompt has its turn too.
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
   * What is granted here is counted before the event loop goes on: promises are served at the end of each of its
   * callbacks.
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
