import type { Client } from 'pg';

/** The output of `npm start -- --json` and `npm run stack -- --json`. */
export interface Ready {
  inferenceUrl: string;
  managementUrl: string;
  operatorUrl: string;
  docsUrl: string;
  operatorSecret: string;
  /** The token for its /metrics. */
  metricsToken?: string;
  demo?: { tenantId: string; key: string; token: string };
}

/** Runs `work` on a direct connection to the database. */
export type Database = <T>(work: (client: Client) => Promise<T>) => Promise<T>;

/**
 * A running Tollgate as its users and its operator see it, with the faults that a test can cause. Suites run unchanged
 * on every form: `useStandalone` (processes on one PostgreSQL) and `useComposed` (services, servers and a load balancer
 * in containers).
 */
export interface Deployment {
  /** The output of the last start. `demo` comes from the first start, because only that has one. */
  readonly ready: Ready;
  /** Each gateway, without a load balancer. */
  readonly gateways: readonly Ready[];
  readonly database: Database;
  /** Starts after `kill` or `stop`, and returns its output. If only some parts have ended, starts those. */
  start(): Promise<Ready>;
  /** Stops as an operator does. Rejects unless everything ended with success. */
  stop(): Promise<void>;
  /** Kills our processes with SIGKILL. The servers keep running or are killed as well. */
  kill(servers: 'servers live on' | 'servers end'): Promise<void>;
  /** Kills one gateway with SIGKILL. */
  killGateway(index: number): Promise<void>;
  /** From now on `contents` has a copy of each message. */
  keepMessages(): Promise<void>;
  /** Everything that is stored, one line each. A line begins with its place, which is `message` for messages. */
  contents(): Promise<string[]>;
  /** The logs of all our processes. */
  logs(): Promise<string>;
}

/** Sends a request with a bearer, GET by default. Returns the status and the parsed body. */
export async function call<T = unknown>(
  url: string,
  bearer: string,
  init: RequestInit = {},
): Promise<{ status: number; body: T; headers: Headers }> {
  const response = await fetch(url, {
    ...init,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...init.headers },
  });
  const text = await response.text();
  return { status: response.status, body: (text ? JSON.parse(text) : null) as T, headers: response.headers };
}

/** The operator API of a running process. */
export function operator(ready: Pick<Ready, 'operatorUrl' | 'operatorSecret'>) {
  const at = <T>(method: string, path: string, body?: unknown) =>
    call<T>(`${ready.operatorUrl}${path}`, ready.operatorSecret, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return {
    get: <T>(path: string) => at<T>('GET', path),
    post: <T>(path: string, body: unknown = {}) => at<T>('POST', path, body),
    put: <T>(path: string, body: unknown) => at<T>('PUT', path, body),
    delete: <T>(path: string) => at<T>('DELETE', path),
  };
}
