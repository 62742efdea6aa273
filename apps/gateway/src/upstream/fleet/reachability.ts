import type { buildConnector } from 'undici';
import { connectorFor } from './connections';
import type { ManagedBackend } from './fleet';

/**
 * Finds out in the background whether unreachable backends can be reached again, so that no request waits for a
 * connection that will not open. Each try comes 1 s after the last one failed. Tries end when the backend has left the
 * configuration.
 */
export class Reachability {
  private readonly timers = new Map<ManagedBackend, NodeJS.Timeout>();
  private closed = false;

  /** @param onReached a backend is back */
  constructor(
    private readonly connectTimeoutMs: number,
    private readonly onReached: () => void,
  ) {}

  lookFor(managed: ManagedBackend): void {
    if (this.closed || this.timers.has(managed) || !managed.isNamed) return;
    const waitMs = managed.breaker.waitMs(performance.now());
    this.timers.set(managed, setTimeout(() => this.look(managed), waitMs).unref());
  }

  close(): void {
    this.closed = true;
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private look(managed: ManagedBackend): void {
    const { backend, breaker } = managed;
    connectorFor(backend, this.connectTimeoutMs)(optionsFor(backend.origin), (error, socket) => {
      socket?.destroy();
      this.timers.delete(managed);
      if (error) {
        breaker.stillUnreachable(performance.now());
        return this.lookFor(managed);
      }
      breaker.reached();
      breaker.isSlowToRefuse = false;
      this.onReached();
    });
  }
}

function optionsFor(origin: string): buildConnector.Options {
  const { protocol, hostname, host, port } = new URL(origin);
  return {
    protocol,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    host,
    port: port || (protocol === 'https:' ? '443' : '80'),
  };
}
