/** The requests that run in this process, for a stop that lets them finish. */
export class InFlight {
  /** Set when the process is stopping: readiness is false, and connections are closed after their answer. */
  draining = false;
  private running = 0;
  private idle: (() => void)[] = [];

  get count(): number {
    return this.running;
  }

  begin(): void {
    this.running += 1;
  }

  end(): void {
    this.running -= 1;
    if (this.running === 0) for (const resolve of this.idle.splice(0)) resolve();
  }

  /** Waits until nothing runs; false when that took longer than `timeoutMs`. */
  async drain(timeoutMs: number): Promise<boolean> {
    this.draining = true;
    if (this.running === 0) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), timeoutMs)));
    const done = new Promise<true>((resolve) => this.idle.push(() => resolve(true)));
    const finished = await Promise.race([done, late]);
    clearTimeout(timer);
    return finished;
  }
}
