import { Counter, Gauge, logger, metrics } from '@tollgate/runtime';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const registers = [metrics];
const open = new Gauge({
  name: 'tollgate_connections',
  help: 'Open connections, by port: public, operator',
  labelNames: ['port'] as const,
  registers,
});
const refused = new Counter({
  name: 'tollgate_connections_refused_total',
  help: 'Connections refused because their port had too many open, by port: public, operator',
  labelNames: ['port'] as const,
  registers,
});

/** Connections beyond the limit that get a 503 at a time. Further ones are closed without an answer. */
const MAX_TOLD_CONNECTIONS = 64;
const LOG_INTERVAL_MS = 10_000;

export type PortName = 'public' | 'operator';

/** Counts a port's connections, and hands each one beyond the limit to `refuse`. */
export function limitConnections(
  server: Server,
  { port, maxConnections }: { port: PortName; maxConnections: number },
  refuse: (socket: Socket) => void,
): void {
  const gauge = open.labels(port);
  const counter = refused.labels(port);
  // The metrics show 0 from the start.
  gauge.inc(0);
  counter.inc(0);
  let count = 0;
  let sinceLogged = 0;
  let pause: NodeJS.Timeout | undefined;
  const log = () => {
    pause = undefined;
    if (sinceLogged === 0) return;
    logger('gateway').warn(
      { port, maxConnections, refused: sinceLogged },
      'connections are refused: the limit of open connections is reached (ulimit -n, TOLLGATE_MAX_CONNECTIONS)',
    );
    sinceLogged = 0;
    pause = setTimeout(log, LOG_INTERVAL_MS).unref();
  };
  const tell = () => {
    counter.inc();
    sinceLogged += 1;
    if (!pause) log();
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
  // Otherwise a worker hands the connection back, and while all workers are full it goes from one to the next for ever.
  (server as Server & { dropMaxConnection: boolean }).dropMaxConnection = true;
  server.on('drop', tell);
}
