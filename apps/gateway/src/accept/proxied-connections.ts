import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { readProxyHeader } from './proxy-header';

/**
 * Lets trusted proxies name the client of a connection by a PROXY header, which comes before the first request. Such a
 * connection has the client's address from then on. A trusted connection without a header works as usual. A header from
 * any other sender is malformed HTTP. The server closes connections whose header is still missing like all others.
 * @param timeoutMs for the first bytes of a connection
 */
export function readProxyHeaders(server: Server, isProxy: (address: string) => boolean, timeoutMs: number): void {
  const waiting = new Set<Socket>();
  const emit = server.emit.bind(server) as (event: string, ...values: unknown[]) => boolean;
  // node:http reads a connection in its own listener of this event, so that listener must not run earlier.
  server.emit = (event: string, ...values: unknown[]): boolean => {
    const [socket] = values as [Socket];
    if (event !== 'connection' || !isProxy(socket.remoteAddress ?? '')) return emit(event, ...values);
    waiting.add(socket);
    socket.once('close', () => waiting.delete(socket));
    readHeader(socket, timeoutMs, () => {
      waiting.delete(socket);
      emit('connection', socket);
    });
    return true;
  };
  // node:http does not know these connections, but waits for them when it closes.
  for (const name of ['closeAllConnections', 'closeIdleConnections'] as const) {
    const close = server[name].bind(server);
    server[name] = (): void => {
      for (const socket of waiting) socket.destroy();
      close();
    };
  }
}

function readHeader(socket: Socket, timeoutMs: number, onRead: () => void): void {
  let bytes = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs).unref();
  const stop = (): void => {
    clearTimeout(timer);
    socket.off('readable', read).off('end', read).off('error', ignore).off('close', stop);
  };
  const read = (): void => {
    for (let more = socket.read() as Buffer | null; more !== null; more = socket.read() as Buffer | null)
      bytes = Buffer.concat([bytes, more]);
    const header = readProxyHeader(bytes);
    if (header.kind === 'malformed') {
      stop();
      socket.destroy();
      return;
    }
    if (header.kind === 'incomplete' && !socket.readableEnded) return;
    stop();
    const { address, rest } =
      header.kind === 'header'
        ? { address: header.address, rest: bytes.subarray(header.bytes) }
        : { address: null, rest: bytes };
    if (address !== null) Object.defineProperty(socket, 'remoteAddress', { value: address });
    if (rest.length > 0 && !socket.readableEnded) socket.unshift(rest);
    onRead();
  };
  socket.on('readable', read).on('end', read).on('error', ignore).on('close', stop);
}

/** `close` follows. */
const ignore = (): void => {};
