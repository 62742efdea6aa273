import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ClientAddresses } from '@tollgate/runtime';
import { RefusedCredentials } from './refused-credentials';

/**
 * Wrong credentials of one address in a minute. More than a person or a script with a wrong key needs to notice, and
 * far too few to guess. Many people may share an address.
 */
const MAX_OF_ADDRESS = 100;
/** Wrong credentials of all addresses in a minute. */
const MAX_OF_ALL = 10_000;

/**
 * Limits wrong credentials on the public port, for both APIs together, by the client's address. Once an address has
 * reached the limit, its credentials are not checked until the minute is over. If the address has sent a valid
 * credential before, its credentials are still checked, and only its wrong ones must wait: one client's mistake does
 * not lock out others behind the same address. Each process counts by itself.
 */
export class CredentialGuard {
  private readonly addresses: ClientAddresses;
  private readonly refused: RefusedCredentials;
  /** Connections whose address is known to have a valid credential. */
  private readonly known = new WeakSet<Socket>();

  constructor(trustedProxies?: string, nowMs?: () => number) {
    this.addresses = new ClientAddresses(trustedProxies);
    this.refused = new RefusedCredentials(
      { component: 'gateway', credential: 'credential', maxOfAddress: MAX_OF_ADDRESS, maxOfAll: MAX_OF_ALL },
      nowMs,
    );
  }

  /** Milliseconds until a credential of this client is checked again. 0: now. */
  waitMs(request: IncomingMessage): number {
    if (this.refused.isEmpty || this.known.has(request.socket)) return 0;
    const address = this.addresses.of(request);
    return this.refused.isTrusted(address) ? 0 : this.refused.waitMs(address);
  }

  /** The credential was valid. Costs a look-up for each connection, or for each request behind a proxy. */
  admitted(request: IncomingMessage): void {
    const { socket } = request;
    if (this.known.has(socket)) return;
    this.refused.trust(this.addresses.of(request));
    // A proxy sends the requests of many clients over one connection.
    if (!this.addresses.isProxy(socket.remoteAddress ?? '')) this.known.add(socket);
  }

  /**
   * The credential was wrong. Returns the milliseconds until another one is checked, also for a trusted address; 0:
   * now.
   */
  failed(request: IncomingMessage): number {
    const address = this.addresses.of(request);
    const waitMs = this.refused.waitMs(address);
    if (waitMs === 0) this.refused.add(address);
    return waitMs;
  }
}

/** The public message of a client that must wait. */
export function tooManyAttempts(waitMs: number): { message: string; retryAfterSeconds: number } {
  const retryAfterSeconds = Math.ceil(waitMs / 1_000);
  const message = `Too many requests from this address had a wrong credential. Retry after ${retryAfterSeconds} s.`;
  return { message, retryAfterSeconds };
}
