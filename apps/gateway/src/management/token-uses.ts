import {
  type BeforeApplicationShutdown,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';

/** lastUsedAt advances within 10 s of a use, even if one message is lost. */
const FLUSH_INTERVAL_MS = 3_000;
/**
 * Limit of tokens gathered between two flushes, or while auth is unavailable. Uses of further tokens are dropped:
 * lastUsedAt is only a hint, and memory is limited.
 */
const MAX_GATHERED_TOKENS = 10_000;
const MAX_USES_PER_MESSAGE = 1_000;

/** Gathers the last use of each token and sends it to auth every few seconds. No request waits for it. */
@Injectable()
export class TokenUses implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  private gathered = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(private readonly services: ServiceClient) {}

  record(tokenId: string, atMs: number): void {
    if (this.gathered.size >= MAX_GATHERED_TOKENS && !this.gathered.has(tokenId)) return;
    this.gathered.set(tokenId, atMs);
  }

  onModuleInit(): void {
    this.timer = setInterval(() => void this.flush(), FLUSH_INTERVAL_MS).unref();
  }

  /** Sends what has gathered while all services still answer. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  /** Sends the uses of the requests that finished since. */
  async onApplicationShutdown(): Promise<void> {
    await this.flush();
  }

  /**
   * Sends the gathered uses, one flush at a time. Uses that auth did not accept are kept for the next flush. Never
   * rejects.
   */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.send());
    return this.flushing;
  }

  private async send(): Promise<void> {
    const uses = [...this.gathered].map(([id, atMs]) => ({ id, at: new Date(atMs).toISOString() }));
    this.gathered = new Map();
    for (let start = 0; start < uses.length; start += MAX_USES_PER_MESSAGE) {
      const batch = uses.slice(start, start + MAX_USES_PER_MESSAGE);
      try {
        await this.services.request('auth.tokens.used', { uses: batch });
      } catch (error) {
        for (const { id, at } of batch) {
          if (!this.gathered.has(id)) this.record(id, Date.parse(at));
        }
        logger('management').warn({ tokens: batch.length, reason: String(error) }, 'token uses not recorded yet');
      }
    }
  }
}
