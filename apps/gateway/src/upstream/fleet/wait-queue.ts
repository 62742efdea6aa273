/** A request that waits for a place at one of its model's backends. */
export interface Waiting {
  /** A place may be free. Returns false if there is none for this request, which then waits on. */
  onPlace(): boolean;
  /** A backend has failed it, so it may need another place than the requests behind it. */
  readonly hasFailed: boolean;
  /** Called once instead, when the time is over. */
  onTimeout(): void;
}

interface Entry {
  waiting: Waiting;
  sinceMs: number;
  timer: NodeJS.Timeout;
}

/**
 * The requests of a model whose backends are all at `maxConcurrency`, first come, first served. Its length and each
 * wait are bounded by the model's `queue`.
 */
export class WaitQueue {
  /** In order of arrival. A Map removes a request that gives up without a search. */
  private readonly entries = new Map<Waiting, Entry>();

  get length(): number {
    return this.entries.size;
  }

  /** When the first of the queue came, by `performance.now()`. Infinity for none. */
  get sinceMs(): number {
    for (const { sinceMs } of this.entries.values()) return sinceMs;
    return Infinity;
  }

  /** Returns false if the queue is full. */
  add(waiting: Waiting, { maxRequests, maxWaitMs }: { maxRequests: number; maxWaitMs: number }): boolean {
    if (this.entries.size >= maxRequests) return false;
    const timer = setTimeout(() => {
      this.entries.delete(waiting);
      waiting.onTimeout();
    }, maxWaitMs);
    this.entries.set(waiting, { waiting, sinceMs: performance.now(), timer });
    return true;
  }

  remove(waiting: Waiting): void {
    const entry = this.entries.get(waiting);
    if (!entry) return;
    clearTimeout(entry.timer);
    this.entries.delete(waiting);
  }

  /**
   * Lets the first one go. If there is no place for it because it failed at the backend that has one, the next one is
   * asked. Returns false if all wait on, or if there is none.
   */
  next(): boolean {
    for (const { waiting } of this.entries.values()) {
      if (waiting.onPlace()) return true;
      if (!waiting.hasFailed) return false;
    }
    return false;
  }
}
