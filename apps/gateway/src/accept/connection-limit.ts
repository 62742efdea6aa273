import { Counter, Gauge, logger, metrics } from '@tollgate/runtime';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const registers = [metrics];
const open = new Gauge({
  name: 'tollgate_connections',
  help: 'Connections that are open, by port',
  labelNames: ['port'] as const,
  registers,
});
const refused = new Counter({
  name: 'tollgate_connections_refused_total',
  help: 'Connections that were closed as there were too many of the port',
  labelNames: ['port'] as const,
  registers,
});

/** Beyond the limit so many at once are told why; more are closed without a word. */
const MAX_TOLD_CONNECTIONS = 64;
const LOG_INTERVAL_MS = 10_000;

export type PortName = 'public' | 'operator';

/** Counts a port's connections, and hands each one that is too many to `refuse`. */
export function limitConnections(
  server: Server,
  { port, maxConnections }: { port: PortName; maxConnections: number },
  refuse: (socket: Socket) => void,
): void {
  const gauge = open.labels(port);
  const counter = refused.labels(port);
  // Shown from the start.
  gauge.inc(0);
  counter.inc(0);
  let count = 0;
  let loggedAtMs = -Infinity;
  let sinceLogged = 0;
  const tell = () => {
    counter.inc();
    sinceLogged += 1;
    if (performance.now() - loggedAtMs < LOG_INTERVAL_MS) return;
    logger('gateway').warn(
      { port, maxConnections, refused: sinceLogged },
      'connections are refused: as many are open as descriptors allow (ulimit -n, TOLLGATE_MAX_CONNECTIONS)',
    );
    loggedAtMs = performance.now();
    sinceLogged = 0;
  };
  server.on('connection', (socket: Socket) => {
    count += 1;
    gauge.inc();
    socket.once('close', () => {
      count -= 1;
      gauge.dec();
    });
    if (count <= maxConnections) return;
    tell();
    refuse(socket);
  });
  if (maxConnections === Infinity) return;
  server.maxConnections = maxConnections + MAX_TOLD_CONNECTIONS;
  server.on('drop', tell);
}
