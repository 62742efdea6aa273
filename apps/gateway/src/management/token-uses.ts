import {
  type BeforeApplicationShutdown,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { LastUses } from '../http/account/last-uses';

/** lastUsedAt advances within 10 s of a use, even if one message is lost. */
const FLUSH_INTERVAL_MS = 3_000;

/** Gathers the last use of each token and sends it to auth every few seconds. */
@Injectable()
export class TokenUses implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly uses: LastUses;
  private timer: NodeJS.Timeout | undefined;

  constructor(services: ServiceClient) {
    this.uses = new LastUses(services, 'auth.tokens.used');
  }

  record(tokenId: string, atMs: number): void {
    this.uses.record(tokenId, atMs);
  }

  onModuleInit(): void {
    this.timer = setInterval(() => void this.uses.flush(), FLUSH_INTERVAL_MS).unref();
  }

  /** Sends what has gathered while all services still answer. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.uses.flush();
  }

  /** Sends the uses of the requests that finished since. */
  async onApplicationShutdown(): Promise<void> {
    await this.uses.flush();
  }
}
