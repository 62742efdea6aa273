import type { Socket } from 'node:net';

/** Time for a client to read its answer and close before the connection is reset. */
const LINGER_MS = 1_000;
/** This many bytes that the client still sends in that time are read and dropped. */
const MAX_DROPPED_BYTES = 64 * 1024;

const lingering = new WeakSet<Socket>();

export function isLingering(socket: Socket): boolean {
  return lingering.has(socket);
}

/**
 * Ends a connection whose request was not fully read. If it closed at once, the kernel would answer further bytes with
 * a reset, and the client could lose an answer that it has not read yet. Sends what is written, then FIN. Drops a
 * bounded number of incoming bytes for a bounded time. Nothing is parsed any more.
 */
export function linger(socket: Socket): void {
  if (lingering.has(socket) || socket.destroyed) return;
  lingering.add(socket);
  socket.end();
  let dropped = 0;
  // Removes node:http's own listener: adding ours takes the socket back from its parser.
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
