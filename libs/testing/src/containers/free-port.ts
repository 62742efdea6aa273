import { createServer } from 'node:net';

// Below the range from which the system takes ports for outgoing connections, so a restarted server can reuse its port.
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;
const MAX_TRIES = 50;

/** Finds a port of 127.0.0.1 on which no server listens now. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port found between ${FIRST_PORT} and ${LAST_PORT}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)));
  });
}
