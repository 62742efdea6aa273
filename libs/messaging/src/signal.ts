/** Wakes one waiting loop. A wake while nobody waits is kept, once, for the next wait: no event between a look and a wait is lost. */
export class Signal {
  private pending = false;
  private resolve: (() => void) | undefined;

  wake(): void {
    this.pending = true;
    this.resolve?.();
  }

  /** Until woken, `timeoutMs` at the most. */
  async wait(timeoutMs: number): Promise<void> {
    if (!this.pending) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.resolve = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.resolve = undefined;
    }
    this.pending = false;
  }
}

/** Wait before try `attempt` + 1 (from 0): doubled each time up to `maxMs`, and between half and the whole of that, so that replicas spread. */
export function backoffMs(attempt: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30)) * (0.5 + Math.random() / 2);
}
