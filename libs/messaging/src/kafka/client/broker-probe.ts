import { withTimeout } from '@tollgate/runtime';
import type { Admin } from 'kafkajs';
import { createKafka, Sockets, type KafkaConnection } from './connection';

/** After this time the asker no longer waits for the answer. */
const PROBE_TIMEOUT_MS = 1_000;

/**
 * Asks the brokers what no request waits for: whether they answer, and how far groups have come. Uses one connection,
 * which is replaced after a failure. A slow connection is kept (kafkajs gives up on it after its own timeouts): on a
 * busy machine the next question would otherwise find no connection either.
 */
export class BrokerProbe {
  private link: { admin: Promise<Admin>; sockets: Sockets } | undefined;

  constructor(private readonly connection: KafkaConnection) {}

  /** Rejects when there is no answer within PROBE_TIMEOUT_MS. */
  async ask<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const link = (this.link ??= this.open());
    const answer = link.admin.then(work);
    answer.catch(() => {
      link.sockets.destroy();
      if (this.link === link) this.link = undefined;
    });
    return withTimeout(PROBE_TIMEOUT_MS, answer);
  }

  close(): void {
    this.link?.sockets.destroy();
    this.link = undefined;
  }

  private open(): { admin: Promise<Admin>; sockets: Sockets } {
    const sockets = new Sockets();
    const admin = createKafka(this.connection, sockets, { quiet: true }).admin({ retry: { retries: 0 } });
    const connected = admin.connect().then(() => admin);
    // Reported to the asker.
    connected.catch(() => {});
    return { admin: connected, sockets };
  }
}
