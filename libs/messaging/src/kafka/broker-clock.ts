/** A sample from an exchange that took longer says too little. */
const MAX_EXCHANGE_MS = 500;
const MAX_AGE_MS = 1_000;

/**
 * The brokers' time, as a common clock of processes whose own clocks differ by minutes: learned from the stamps that brokers put on what is published, and kept between them by this
 * process's monotonic clock, which nobody sets.
 */
export class BrokerClock {
  private offsetMs: number | undefined;
  private observedMs = -Infinity;

  /** `stampMs`: the broker's time (epoch; negative or NaN when it gave none) at some moment between `sentMs` and `answeredMs` of `performance.now()`. */
  observe(stampMs: number, sentMs: number, answeredMs: number): void {
    if (!(stampMs > 0)) return;
    if (this.offsetMs !== undefined && answeredMs - sentMs > MAX_EXCHANGE_MS) return;
    this.offsetMs = stampMs - (sentMs + answeredMs) / 2;
    this.observedMs = answeredMs;
  }

  /** Epoch milliseconds; undefined before the first sample. */
  nowMs(): number | undefined {
    return this.offsetMs === undefined ? undefined : performance.now() + this.offsetMs;
  }

  /** Whether a new sample is due before anything is refused by this clock. */
  get stale(): boolean {
    return performance.now() - this.observedMs > MAX_AGE_MS;
  }
}
