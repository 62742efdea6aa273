import {
  type BeforeApplicationShutdown,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';

/** lastUsedAt is promised within 10 s of a use: this, and one message lost, stay below it. */
const FLUSH_INTERVAL_MS = 3_000;
/**
 * Beyond so many different tokens between two flushes (or while auth is away) further ones are not noted: lastUsedAt is
 * advice, memory is not.
 */
const MAX_GATHERED_TOKENS = 10_000;
const MAX_USES_PER_MESSAGE = 1_000;

/** Gathers when each token was used last and tells auth every few seconds: a request never waits for it. */
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

  /** While every service still answers… */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  /** … and once more for the requests that were finished since. */
  async onApplicationShutdown(): Promise<void> {
    await this.flush();
  }

  /**
   * Sends what has gathered, one sending at a time. What auth did not take is kept for the next time; never rejects.
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
