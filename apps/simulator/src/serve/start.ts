import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readSettings, type SimulatorConfig } from '../config/settings';
import { Handler, type RecordedRequest } from './handler';
import type { SimulatorStats } from './stats';

/** Longer than a gateway keeps idle connections, so that the backend never closes one that is about to be used. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

export interface SimulatorOptions extends SimulatorConfig {
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
}

export interface Simulator {
  /** The base URL. It ends in /v1. */
  url: string;
  stats(): SimulatorStats;
  /** The latest `recordRequests` requests, oldest first. */
  requests(): RecordedRequest[];
  /** Resets the counters, the recorded requests and the counts of the fault rules. */
  reset(): void;
  /** Frees the port. Resolves when the open requests have ended. A request that hangs never ends. */
  end(): Promise<void>;
  /** Cuts open connections and frees the port. May follow `end`. */
  close(): Promise<void>;
}

/** Starts the fake model backend in this process. Throws `ConfigError`, or the error of listening on the port. */
export async function startSimulator({
  host = '127.0.0.1',
  port = 0,
  ...config
}: SimulatorOptions = {}): Promise<Simulator> {
  const handler = new Handler(readSettings(config));
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS }, handler.listen);
  let ended: Promise<void> | undefined;
  const end = () =>
    (ended ??= new Promise<void>((resolve, reject) => {
      server.close((error) => (error ? reject(error) : resolve()));
    }));
  server.on('request', (_request, response) => {
    // A client that keeps its connection would use it for further requests.
    response.once('close', () => ended && setImmediate(() => server.closeIdleConnections()));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { address, port: bound, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/v1`,
    stats: () => handler.stats(),
    requests: () => handler.requests(),
    reset: () => handler.reset(),
    end,
    close: () => {
      const closed = end();
      server.closeAllConnections();
      return closed;
    },
  };
}
