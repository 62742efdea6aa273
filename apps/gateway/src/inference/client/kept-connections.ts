import { Injectable } from '@nestjs/common';
import { PlaceList } from '@tollgate/runtime';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { isIdle } from '../../accept/exchanges';
import { InFlight } from './in-flight';

/**
 * The connections that clients keep between requests, for the stop. An answer that begins after the stop signal says
 * that its connection ends. An answer that began before could not say so. If its connection were closed at once, the
 * client's next request could be on its way: it would have no answer, and nobody repeats a POST.
 */
@Injectable()
export class KeptConnections {
  /** A client that keeps a connection busy sends its next request within this time after an answer. Tests change it. */
  nextRequestMs = 1_000;
  private readonly open = new PlaceList<Socket>();
  /** Connections whose next request is awaited, and what ends the wait. */
  private readonly awaited = new Map<Socket, () => void>();

  constructor(private readonly inFlight: InFlight) {}

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const place = this.open.add(socket);
      socket.once('close', () => this.open.remove(socket, place));
    });
  }

  /**
   * Called when an answer has ended, after the stop signal. Unless the answer said that its connection ends, waits a
   * moment for one more request, then closes the connection. The drain waits as well.
   */
  awaitNext(socket: Socket): void {
    if (!socket.writable || !isIdle(socket)) return;
    const wait = { cutOff: () => void socket.destroy() };
    // An answer that is in progress by then ends the connection itself.
    const close = (): void => (isIdle(socket) ? socket.destroySoon() : end());
    // A process that stood still first reads what has arrived meanwhile.
    const timer = setTimeout(() => setImmediate(close), this.nextRequestMs);
    const end = (): void => {
      if (!this.awaited.delete(socket)) return;
      clearTimeout(timer);
      socket.off('close', end);
      this.inFlight.end(wait);
    };
    this.inFlight.begin(wait);
    socket.once('close', end);
    this.awaited.set(socket, end);
  }

  /** Whether one more request of this connection is served, although the process takes no new requests. */
  isAwaited(socket: Socket): boolean {
    return this.awaited.has(socket);
  }

  /** The next request is in progress. */
  arrived(socket: Socket): void {
    this.awaited.get(socket)?.();
  }

  /** Closes the connections that had requests and have none now, so that their clients find another gateway. */
  closeIdle(): void {
    for (const socket of this.open) if (isIdle(socket) === true && !this.awaited.has(socket)) socket.destroySoon();
  }
}
