import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { networkInterfaces } from 'node:os';
import { Upstream } from './upstream';

/** A look at the interfaces costs some 50 µs. */
const INTERVAL_MS = 500;

/**
 * Closes the idle connections from addresses that this machine has lost, for example because its container left a
 * network and returned with another address. Nothing tells such a connection that it is dead: the next request on it
 * would fail, and could not be repeated, because the backend may have received it.
 */
@Injectable()
export class LostAddresses implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => Promise.resolve(this.closeLost(ownAddresses())),
    failed: (error) =>
      logger('gateway').warn({ reason: (error as Error).message }, 'reading the addresses of this machine failed'),
    everyMs: INTERVAL_MS,
  });
  private known: ReadonlySet<string> = new Set();

  constructor(private readonly upstream: Upstream) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  onApplicationShutdown(): void {
    void this.task.stop();
  }

  /** @param addresses that this machine has now */
  closeLost(addresses: ReadonlySet<string>): void {
    const lost = [...this.known].filter((address) => !addresses.has(address));
    this.known = addresses;
    if (lost.length === 0) return;
    const closed = this.upstream.connections.closeIdle(lost);
    if (closed > 0) logger('gateway').info({ lost, closed }, 'closed idle connections from lost addresses');
  }
}

function ownAddresses(): ReadonlySet<string> {
  const interfaces = Object.values(networkInterfaces());
  return new Set(interfaces.flatMap((entries) => (entries ?? []).map(({ address }) => address)));
}
