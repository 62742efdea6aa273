import type { Socket } from 'node:net';

/** How long a client may take to read its answer and close, before the connection is reset. */
const LINGER_MS = 1_000;
/** Of what it still sends meanwhile, so much is taken in and dropped. */
const MAX_DROPPED_BYTES = 64 * 1024;

const lingering = new WeakSet<Socket>();

export function isLingering(socket: Socket): boolean {
  return lingering.has(socket);
}

/**
 * Ends a connection of which not all was read: closed at once, the kernel would answer what still comes with a reset,
 * and the client could lose the answer that it has not read yet. Sends what is written, says that nothing follows, and
 * drops a bounded part of what comes for a bounded time. Nothing is parsed any more.
 */
export function linger(socket: Socket): void {
  if (lingering.has(socket) || socket.destroyed) return;
  lingering.add(socket);
  socket.end();
  let dropped = 0;
  // Without node:http's own listener: adding one of ours takes the socket back from its parser.
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped >= MAX_DROPPED_BYTES) socket.pause();
  });
  socket.on('error', () => {});
  socket.on('end', () => socket.destroy());
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
}
