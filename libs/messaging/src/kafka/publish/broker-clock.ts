/** Any newer sample replaces one of this age, because the monotonic clock drifts a little. */
const MAX_AGE_MS = 60_000;
/** The maximum age of a sample by which a request is refused. */
const FRESH_MS = 1_000;

const EXACT_MS = 50;

interface Sample {
  /** Broker time minus `performance.now()` is between these. */
  leastMs: number;
  mostMs: number;
  takenMs: number;
}

/**
 * The brokers' time, as a common clock of processes whose own clocks differ by minutes. It is learned from the stamps
 * that brokers put on published messages. In between, the process's monotonic clock continues it, which nobody sets. It
 * knows its error: a stamp was made at some time between sending and answer.
 */
export class BrokerClock {
  private sample: Sample | undefined;

  /**
   * `stampMs`: the broker's time (epoch; negative or NaN for none) at some time between `sentMs` and `answeredMs` of
   * `performance.now()`.
   */
  observe(stampMs: number, sentMs: number, answeredMs: number): void {
    if (!(stampMs > 0)) return;
    const last = this.sample;
    const isWorse = last && answeredMs - sentMs > last.mostMs - last.leastMs;
    if (isWorse && answeredMs - last.takenMs < MAX_AGE_MS) return;
    this.sample = { leastMs: stampMs - answeredMs, mostMs: stampMs - sentMs, takenMs: answeredMs };
  }

  /** The latest possible current time, epoch milliseconds. By the process's own clock before the first sample. */
  latestMs(): number {
    return this.sample ? performance.now() + this.sample.mostMs : Date.now();
  }

  /** The earliest possible current time, epoch milliseconds. 0 before the first sample. */
  earliestMs(): number {
    return this.sample ? performance.now() + this.sample.leastMs : 0;
  }

  /** Whether the error is small compared with any deadline. */
  get isExact(): boolean {
    return this.sample !== undefined && this.sample.mostMs - this.sample.leastMs <= EXACT_MS;
  }

  get isFresh(): boolean {
    return this.sample !== undefined && performance.now() - this.sample.takenMs < FRESH_MS;
  }
}
