/** The minimum time between two probes of the store, from the end of the last one, however often somebody asks. */
const EVERY_MS = 1_000;
/** Shorter while the store cannot write, so that its recovery is noticed soon. */
const SOONER = 4;

/** One probe for all callers within a second. Its outcome stands until the next. */
export class SharedProbe {
  private outcome: Promise<void> | undefined;
  private nextMs = 0;

  /** `probe` ends within a bounded time. */
  constructor(
    private readonly probe: () => Promise<unknown>,
    private readonly everyMs = EVERY_MS,
  ) {}

  /** Rejects as the probe did. */
  check(): Promise<void> {
    if (!this.outcome || performance.now() >= this.nextMs) {
      this.nextMs = Infinity;
      this.outcome = this.run();
      this.outcome.catch(() => {});
    }
    return this.outcome;
  }

  private async run(): Promise<void> {
    let waitMs = this.everyMs / SOONER;
    try {
      await this.probe();
      waitMs = this.everyMs;
    } finally {
      this.nextMs = performance.now() + waitMs;
    }
  }
}
