const PROBE_INTERVAL_MS = 200;
const PROBE_TIMEOUT_MS = 400;

/**
 * Remembers that a server does not answer, so that no call waits for it: closed → open (a call got no answer in time)
 * → closed again by any answer. While it is open it probes five times a second. Lost connections need no breaker: the
 * client notices them at once.
 */
export class Breaker {
  private timer: NodeJS.Timeout | undefined;
  private opened = false;
  private stopped = false;

  /** `probe` sends a small request to the server. `onSilence`: a probe was not answered in time either. */
  constructor(
    private readonly probe: () => Promise<unknown>,
    private readonly onSilence: () => void,
  ) {}

  get isOpen(): boolean {
    return this.opened;
  }

  open(): void {
    if (this.opened || this.stopped) return;
    this.opened = true;
    this.schedule();
  }

  /** The server answered something, however late. */
  close(): void {
    this.opened = false;
    clearTimeout(this.timer);
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private schedule(): void {
    if (!this.stopped) this.timer = setTimeout(() => void this.tryOnce(), PROBE_INTERVAL_MS).unref();
  }

  private async tryOnce(): Promise<void> {
    const answer = await within(PROBE_TIMEOUT_MS, this.probe());
    if (answer === 'answered') this.close();
    if (!this.opened || this.stopped) return;
    this.schedule();
    if (answer === 'silent') this.onSilence();
  }
}

/** The state of a promise after this time. Never rejects. */
export function within(timeoutMs: number, promise: Promise<unknown>): Promise<'answered' | 'failed' | 'silent'> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => afterReading(() => resolve('silent')), timeoutMs);
    promise.then(
      () => {
        clearTimeout(timer);
        resolve('answered');
      },
      () => {
        clearTimeout(timer);
        resolve('failed');
      },
    );
  });
}

/**
 * Judges a silent server only after reading what has arrived from it. After a standstill of this process (garbage
 * collection, a busy machine), timers run before waiting sockets are read. A busy gateway would then take a Redis that
 * has answered for dead.
 */
export function afterReading(judge: () => void): void {
  setImmediate(judge);
}
