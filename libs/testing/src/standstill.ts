const LOOK_EVERY_MS = 10;
/** Timers are exact to a millisecond. A look that is later than this was kept waiting by the machine. */
const PUNCTUAL_MS = 2;

/**
 * Measures how long this process neither slept nor ran, because the machine ran other programs. A busy machine delays
 * the code under test in the same way, so tests that guarantee a time do not count it.
 */
export class Standstill {
  private readonly timer = setInterval(() => this.look(), LOOK_EVERY_MS);
  private stoodMs = 0;
  private lookedMs = performance.now();
  private worked = process.cpuUsage();

  /** The time since the beginning of this measurement for which the process stood still. */
  get ms(): number {
    this.look();
    return this.stoodMs;
  }

  end(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const nowMs = performance.now();
    const worked = process.cpuUsage();
    const workedMs = (worked.user + worked.system - this.worked.user - this.worked.system) / 1_000;
    const lateMs = nowMs - this.lookedMs - LOOK_EVERY_MS - workedMs;
    if (lateMs > PUNCTUAL_MS) this.stoodMs += lateMs;
    this.lookedMs = nowMs;
    this.worked = worked;
  }
}

/** The time that `work` takes, without the time for which the machine did not run this process. */
export async function elapsedMs(work: () => Promise<unknown>): Promise<number> {
  const standstill = new Standstill();
  const fromMs = performance.now();
  try {
    await work();
    return performance.now() - fromMs - standstill.ms;
  } finally {
    standstill.end();
  }
}
