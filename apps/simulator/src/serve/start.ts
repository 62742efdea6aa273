import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readSettings, type SimulatorConfig } from '../config/settings';
import { Handler, type RecordedRequest } from './handler';
import type { SimulatorStats } from './stats';

/**
 * Longer than a gateway keeps its idle connections: the backend must not be the side that closes one just as it is
 * used.
 */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

export interface SimulatorOptions extends SimulatorConfig {
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
}

export interface Simulator {
  /** The base URL, ends in /v1. */
  url: string;
  stats(): SimulatorStats;
  /** The latest requests, oldest first; as many as `recordRequests`. */
  requests(): RecordedRequest[];
  /** Counters, records and the fault series start anew. */
  reset(): void;
  /** Cuts what is open and frees the port. */
  close(): Promise<void>;
}

/** Starts the fake model backend in this process. Throws `ConfigError`, or what listening throws. */
export async function startSimulator({
  host = '127.0.0.1',
  port = 0,
  ...config
}: SimulatorOptions = {}): Promise<Simulator> {
  const handler = new Handler(readSettings(config));
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS }, handler.listen);
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
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}
