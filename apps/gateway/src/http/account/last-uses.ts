import type { Requests } from '@tollgate/messaging';
import { logger } from '@tollgate/runtime';

/**
 * Limit of credentials gathered between two flushes, or while auth is unavailable. Uses of further ones are dropped:
 * lastUsedAt is only a hint, and memory is limited.
 */
const MAX_GATHERED = 10_000;
const MAX_USES_PER_MESSAGE = 1_000;

/** Gathers the last use of each credential, until it is sent to auth. No request waits for it. */
export class LastUses {
  private gathered = new Map<string, number>();
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly services: Requests,
    private readonly subject: 'auth.keys.used' | 'auth.tokens.used',
  ) {}

  record(id: string, atMs: number): void {
    if (this.gathered.size >= MAX_GATHERED && !this.gathered.has(id)) return;
    this.gathered.set(id, atMs);
  }

  /**
   * Sends the gathered uses, one flush at a time. Uses that auth did not accept are kept for the next flush. Never
   * rejects.
   */
  flush(deadlineMs?: number): Promise<void> {
    this.flushing = this.flushing.then(() => this.send(deadlineMs));
    return this.flushing;
  }

  private async send(deadlineMs: number | undefined): Promise<void> {
    const uses = [...this.gathered].map(([id, atMs]) => ({ id, at: new Date(atMs).toISOString() }));
    this.gathered = new Map();
    for (let start = 0; start < uses.length; start += MAX_USES_PER_MESSAGE) {
      const batch = uses.slice(start, start + MAX_USES_PER_MESSAGE);
      try {
        await this.services.request(this.subject, { uses: batch }, deadlineMs === undefined ? {} : { deadlineMs });
      } catch (error) {
        for (const { id, at } of batch) {
          if (!this.gathered.has(id)) this.record(id, Date.parse(at));
        }
        const failed = { subject: this.subject, uses: batch.length, reason: String(error) };
        logger('gateway').warn(failed, 'last uses are not recorded yet');
      }
    }
  }
}
