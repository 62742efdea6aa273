/** After so long a sample is replaced by any newer one: the monotonic clock runs a little fast or slow. */
const MAX_AGE_MS = 60_000;
/** What is refused by this clock is refused by a sample no older than this. */
const FRESH_MS = 1_000;

const EXACT_MS = 50;

interface Sample {
  /** Broker time less `performance.now()` is between these. */
  leastMs: number;
  mostMs: number;
  takenMs: number;
}

/**
 * The brokers' time, as a common clock of processes whose own clocks differ by minutes: learned from the stamps that
 * brokers put on what is published, and kept between them by this process's monotonic clock, which nobody sets. It
 * knows its error: a stamp was given at some moment between sending and answer.
 */
export class BrokerClock {
  private sample: Sample | undefined;

  /**
   * `stampMs`: the broker's time (epoch; negative or NaN when it gave none) at some moment between `sentMs` and
   * `answeredMs` of `performance.now()`.
   */
  observe(stampMs: number, sentMs: number, answeredMs: number): void {
    if (!(stampMs > 0)) return;
    const last = this.sample;
    const isWorse = last && answeredMs - sentMs > last.mostMs - last.leastMs;
    if (isWorse && answeredMs - last.takenMs < MAX_AGE_MS) return;
    this.sample = { leastMs: stampMs - answeredMs, mostMs: stampMs - sentMs, takenMs: answeredMs };
  }

  /** Epoch milliseconds that it is now at the latest; by the process's own clock before the first sample. */
  latestMs(): number {
    return this.sample ? performance.now() + this.sample.mostMs : Date.now();
  }

  /** Epoch milliseconds that it is now at the earliest; 0 before the first sample. */
  earliestMs(): number {
    return this.sample ? performance.now() + this.sample.leastMs : 0;
  }

  /** Whether its error is small beside any deadline. */
  get isExact(): boolean {
    return this.sample !== undefined && this.sample.mostMs - this.sample.leastMs <= EXACT_MS;
  }

  get isFresh(): boolean {
    return this.sample !== undefined && performance.now() - this.sample.takenMs < FRESH_MS;
  }
}
