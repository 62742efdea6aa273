import type { Requests } from '@tollgate/messaging';
import { logger } from '@tollgate/runtime';
import { PacedReports, type Reported } from './paced-reports';

/**
 * Limit of credentials that are known at a time, also while auth is unavailable. Uses of further ones are dropped:
 * lastUsedAt is only a hint, and memory is limited.
 */
const MAX_KNOWN = 10_000;
const MAX_USES_PER_MESSAGE = 1_000;
/**
 * Uses whose pause is over are sent together, at most once in this part of the pause. So the number of messages does
 * not grow with the number of busy credentials.
 */
const TOGETHER = 1 / 6;
/** A timer may fire this much early by the clock of the process. */
const EARLY_MS = 1;

interface Use {
  atMs: number;
  /** The use that auth has. Null: none. */
  reportedMs: number | null;
  /** On the clock of the process. Until then, uses are gathered and not sent. */
  restsUntilMs: number;
}

/**
 * Sends the last use of each credential to auth. The first use after a quiet time is sent at once. Of those that
 * follow, only the last one is sent, after a pause, because each report changes a row. No request waits for it.
 */
export class LastUses {
  /** Those that were used, until they have rested without a use. */
  private readonly known = new Map<string, Use>();
  private readonly reports = new PacedReports(() => this.send());

  constructor(
    private readonly services: Requests,
    private readonly subject: 'auth.keys.used' | 'auth.tokens.used',
    private readonly restMs: number,
  ) {}

  record(id: string, atMs: number): void {
    const use = this.known.get(id);
    if (use) {
      use.atMs = atMs;
      return;
    }
    if (this.known.size >= MAX_KNOWN && !this.forgetOldest()) return;
    this.known.set(id, { atMs, reportedMs: null, restsUntilMs: 0 });
    this.reports.ask();
  }

  /**
   * Makes a place for another credential, so that none stays unknown beside many busy ones. False: not even the oldest
   * was reported yet.
   */
  private forgetOldest(): boolean {
    for (const [id, { reportedMs }] of this.known) return reportedMs !== null && this.known.delete(id);
    return false;
  }

  /** Sends all uses that auth does not have, also the uses of idle credentials. Never rejects. */
  flush(deadlineMs?: number): Promise<void> {
    return this.reports.now(() => this.send({ all: true, deadlineMs }));
  }

  /** Sends nothing more by itself. */
  close(): void {
    this.reports.close();
  }

  /** Uses that auth did not accept are sent the next time. */
  private async send({
    all = false,
    deadlineMs,
  }: { all?: boolean; deadlineMs?: number | undefined } = {}): Promise<Reported> {
    const nowMs = performance.now();
    let nextMs = Infinity;
    const due: { id: string; use: Use; atMs: number }[] = [];
    for (const [id, use] of this.known) {
      const rests = use.restsUntilMs > nowMs + EARLY_MS;
      const isNew = use.atMs !== use.reportedMs;
      if (isNew && (all || !rests)) due.push({ id, use, atMs: use.atMs });
      else if (rests) nextMs = Math.min(nextMs, use.restsUntilMs);
      else this.known.delete(id);
    }
    let isComplete = true;
    for (let start = 0; start < due.length; start += MAX_USES_PER_MESSAGE) {
      const batch = due.slice(start, start + MAX_USES_PER_MESSAGE);
      const uses = batch.map(({ id, atMs }) => ({ id, at: new Date(atMs).toISOString() }));
      try {
        await this.services.request(this.subject, { uses }, deadlineMs === undefined ? {} : { deadlineMs });
        for (const { use, atMs } of batch) [use.reportedMs, use.restsUntilMs] = [atMs, nowMs + this.restMs];
        nextMs = Math.min(nextMs, nowMs + this.restMs);
      } catch (error) {
        isComplete = false;
        const failed = { subject: this.subject, uses: uses.length, reason: String(error) };
        logger('gateway').warn(failed, 'last uses are not recorded yet');
      }
    }
    return { rows: due.length, isComplete, nextInMs: Math.max(nextMs - nowMs, this.restMs * TOGETHER) };
  }
}
