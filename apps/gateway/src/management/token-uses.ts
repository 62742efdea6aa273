import { type BeforeApplicationShutdown, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { LastUses } from '../activity/last-uses';

/** The row of a token in constant use changes at most this often. */
const TOKEN_RESTS_MS = 3_000;

/** Sends the last use of each token to auth. */
@Injectable()
export class TokenUses implements BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly uses: LastUses;

  constructor(services: ServiceClient) {
    this.uses = new LastUses(services, 'auth.tokens.used', TOKEN_RESTS_MS);
  }

  record(tokenId: string, atMs: number): void {
    this.uses.record(tokenId, atMs);
  }

  /** Sends what has gathered while all services still answer. */
  async beforeApplicationShutdown(): Promise<void> {
    this.uses.close();
    await this.uses.flush();
  }

  /** Sends the uses of the requests that finished since. */
  async onApplicationShutdown(): Promise<void> {
    await this.uses.flush();
  }
}
