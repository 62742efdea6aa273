export interface PeriodicTaskOptions {
  /** Should end early once the signal is aborted, if a run takes long. */
  run: (ending: AbortSignal) => Promise<unknown>;
  /** Logs the failure of a run. The task still runs again. Not called with the reason of `stop`. */
  failed: (error: unknown) => void;
  /** From the end of a run to the next one. Null: this was the last one. */
  everyMs: number | (() => number | null);
  /** From the start to the first run. Without it, the first run begins at once. */
  firstMs?: number;
  /** From a failed run to the next one, if it differs from `everyMs`. */
  retryMs?: number;
  /** Whether a timer that waits keeps the process alive. Default: no. */
  keepsProcess?: boolean;
}

/** Runs a task repeatedly between `start` and `stop`, never twice at once. A failed run is retried. */
export class PeriodicTask {
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly options: PeriodicTaskOptions) {}

  /** Aborted by `stop`. */
  get ending(): AbortSignal {
    return this.stopping.signal;
  }

  /** Ends with the run that is under way. Never rejects. */
  get current(): Promise<void> {
    return this.running;
  }

  start(): void {
    const { firstMs } = this.options;
    if (firstMs === undefined) this.running = this.runOnce();
    else this.schedule(firstMs);
  }

  /** Starts no further run, and waits for the one that is under way. */
  async stop(reason?: Error): Promise<void> {
    this.stopping.abort(reason);
    clearTimeout(this.timer);
    await this.running;
  }

  private async runOnce(): Promise<void> {
    const { run, failed, everyMs, retryMs } = this.options;
    let nextMs: number | null | undefined;
    try {
      await run(this.ending);
    } catch (error) {
      // A run that ends early because of the stop has not failed. Any other error of it is a failure.
      if (!this.ending.aborted || error !== this.ending.reason) failed(error);
      nextMs = retryMs;
    }
    if (this.ending.aborted) return;
    if (nextMs === undefined) nextMs = typeof everyMs === 'number' ? everyMs : everyMs();
    if (nextMs !== null) this.schedule(nextMs);
  }

  private schedule(inMs: number): void {
    this.timer = setTimeout(() => (this.running = this.runOnce()), inMs);
    if (!this.options.keepsProcess) this.timer.unref();
  }
}
