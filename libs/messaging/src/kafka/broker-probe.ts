import { withTimeout } from '@tollgate/runtime';
import type { Admin } from 'kafkajs';
import { createKafka, Sockets, type KafkaConnection } from './connection';

/** Longer, and nobody waits for the answer any more. */
const PROBE_TIMEOUT_MS = 1_000;

/**
 * Asks the brokers things that a request of the service never waits for: whether they are there, how far groups have
 * come. One connection, made anew after a failure; one that is merely slow is kept (kafkajs gives up on it after its
 * own time-outs), or on a busy machine the next question would find no connection either.
 */
export class BrokerProbe {
  private link: { admin: Promise<Admin>; sockets: Sockets } | undefined;

  constructor(private readonly connection: KafkaConnection) {}

  /** Rejects when there is no answer in PROBE_TIMEOUT_MS. */
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
    // Whoever asks hears of it.
    connected.catch(() => {});
    return { admin: connected, sockets };
  }
}
