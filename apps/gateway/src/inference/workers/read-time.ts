/** The shortest time between two looks. */
const LEAST_LOOK_MS = 1;

/**
 * Limits the CPU time that a worker thread spends on one body or answer. The thread has a low priority, so on a busy
 * machine even a small one may take long: that says nothing about it. A second limit, of the elapsed time, bounds the
 * wait.
 *
 * A thread that is stuck cannot report its own CPU time. So all threads but the main one are counted: other workers,
 * the garbage collector. The worker has used no more than that.
 */
export class ReadTime {
  private timer: NodeJS.Timeout | undefined;
  /** The worker has used its CPU time. */
  isUsedUp = false;
  /** One of the two limits was reached. */
  isOver = false;

  constructor(private readonly limits: { readonly maxReadMs: number; readonly readTimeoutMs: number }) {}

  /**
   * The worker begins to read. `onOver` is called once, unless `end` is called before.
   * @param endsAtMs a further limit of the elapsed time, by `performance.now()`
   */
  begin(onOver: () => void, endsAtMs = Infinity): void {
    const { maxReadMs, readTimeoutMs } = this.limits;
    const [fromMs, fromCpuMs] = [performance.now(), otherThreadsMs()];
    const look = () => {
      const leftMs = maxReadMs - (otherThreadsMs() - fromCpuMs);
      const leftWaitMs = Math.min(fromMs + readTimeoutMs, endsAtMs) - performance.now();
      this.isUsedUp = leftMs <= 0;
      this.isOver = this.isUsedUp || leftWaitMs <= 0;
      if (this.isOver) return onOver();
      this.timer = setTimeout(look, Math.max(LEAST_LOOK_MS, Math.min(leftMs, leftWaitMs))).unref();
    };
    look();
  }

  end(): void {
    clearTimeout(this.timer);
  }
}

/** The CPU time of all threads of the process but the main one, in milliseconds. */
function otherThreadsMs(): number {
  const [all, main] = [process.cpuUsage(), process.threadCpuUsage()];
  return (all.user + all.system - main.user - main.system) / 1_000;
}
