/**
 * The pause from the first change to its report, and from a report to the next one. A page of the console looks once a
 * second, so it shows a change within two seconds.
 */
const GATHER_MS = 500;
/** A report is never later while its service answers. */
const MAX_PAUSE_MS = 10_000;
/** After a report that failed. */
const RETRY_MS = 3_000;
/**
 * Rows that reports of one kind change in a second, until the longest pause is reached. A gateway serves thousands of
 * requests a second, each of which is a row of the books. So reports are a few percent of the writes of a busy gateway.
 */
const ROWS_PER_SECOND = 50;

/** The result of a report. */
export interface Reported {
  /** Those that were sent. */
  rows: number;
  /** False: some are left, and are reported the next time. */
  isComplete: boolean;
  /** When there is more to report, even if nobody asks. Infinity: never. */
  nextInMs?: number;
}

/**
 * Decides when to report. Idle, it has no timer: the first change starts one, and each further change until the report
 * costs one comparison. Reports run one at a time.
 */
export class PacedReports {
  private isAsked = false;
  private isClosed = false;
  private timer: NodeJS.Timeout | undefined;
  /** The pause after the last report is over. */
  private pausedUntilMs = 0;
  private running = 0;
  private last: Promise<void> = Promise.resolve();

  /** `report` never rejects. */
  constructor(private readonly report: () => Promise<Reported>) {}

  /** Something is new. Called for each request. */
  ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    if (this.running === 0) this.plan(GATHER_MS);
  }

  /** Reports what is known at this moment, after the report that is under way. Never rejects. */
  now(report = this.report): Promise<void> {
    clearTimeout(this.timer);
    this.running++;
    this.last = this.last.then(() => this.run(report));
    return this.last;
  }

  /** Plans no further report. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  private plan(inMs: number): void {
    clearTimeout(this.timer);
    if (this.isClosed || inMs === Infinity) return;
    const afterMs = Math.max(inMs, this.pausedUntilMs - performance.now());
    this.timer = setTimeout(() => void this.now(), afterMs).unref();
  }

  private async run(report: () => Promise<Reported>): Promise<void> {
    this.isAsked = false;
    const { rows, isComplete, nextInMs = Infinity } = await report();
    const pauseMs = Math.max((rows / ROWS_PER_SECOND) * 1_000, isComplete ? 0 : RETRY_MS);
    this.pausedUntilMs = performance.now() + Math.min(pauseMs, MAX_PAUSE_MS);
    this.running--;
    if (!isComplete) this.isAsked = true;
    if (this.running === 0) this.plan(this.isAsked ? GATHER_MS : nextInMs);
  }
}
