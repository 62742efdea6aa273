import type { Client } from 'pg';

/** What `npm start -- --json` and `npm run stack -- --json` print. */
export interface Ready {
  inferenceUrl: string;
  managementUrl: string;
  operatorUrl: string;
  docsUrl: string;
  operatorSecret: string;
  /** What its /metrics wants. */
  metricsToken?: string;
  demo?: { tenantId: string; key: string; token: string };
}

/** Runs `work` on a connection to the database, past every API. */
export type Database = <T>(work: (client: Client) => Promise<T>) => Promise<T>;

/**
 * A running Tollgate as its users and its operator see it, and what a test does to it. Suites take one and run
 * unchanged on every form: `useStandalone` (processes on one PostgreSQL), `useComposed` (services, servers and a load
 * balancer in containers).
 */
export interface Deployment {
  /** Of the last start; `demo` is the first's, which alone has one. */
  readonly ready: Ready;
  /** Each gateway by itself. */
  readonly gateways: readonly Ready[];
  readonly database: Database;
  /** What was printed. After `kill` or `stop`; where only some parts are gone, brings those back. */
  start(): Promise<Ready>;
  /** As an operator does. Rejects unless everything ended in order. */
  stop(): Promise<void>;
  /** kill -9 of every process of ours; the servers beneath live on or end as well. */
  kill(servers: 'servers live on' | 'servers end'): Promise<void>;
  /** kill -9 */
  killGateway(index: number): Promise<void>;
  /** From now on a copy of each message is among the `contents`. */
  keepMessages(): Promise<void>;
  /** Everything that is stored anywhere, a line each, which begins with its place; that of messages is `message`. */
  contents(): Promise<string[]>;
  /** What all processes of ours have logged. */
  logs(): Promise<string>;
}

/** GET (or what `init` says) with a bearer; the parsed body and the status. */
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
export function operator(ready: Ready) {
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
