/**
 * How a service's statements reach PostgreSQL through TypeORM. What TypeORM leaves untyped or does not offer is known
 * to this file and copy-in.ts alone:
 *
 * - Its `query` answers an UPDATE or a DELETE with `[rows, count]`, and every other statement with its rows. `query`
 *   and `changedRows` give each one form.
 * - It hands out its pool untyped (`poolOf`).
 * - It hands out the connection of a transaction untyped. COPY needs that connection (`copyInOn`), and so do
 *   statements with a timeout of their own, because TypeORM sets none (`withStatementTimeout`), and prepared statements
 *   (`queryPrepared`).
 * - node-postgres keeps a connection after it has given up an answer. The next query would wait behind the one that is
 *   never answered. TypeORM makes its own pool, so the pool is given a class of connections that break off
 *   (`BreakableClient`).
 */
import { Client, type ClientConfig, type Pool, type QueryConfig } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { queryWithin } from './query-within';

/** The server ends a statement that takes longer, and a transaction whose client is silent for longer. */
export const STATEMENT_TIMEOUT_MS = 60_000;
/** An answer that takes longer is given up: the server, or the network to it, has fallen silent. */
export const ANSWER_TIMEOUT_MS = 70_000;

/** Runs a statement: a data source, or the manager of a transaction. */
export type Statements = Pick<EntityManager, 'query'>;

/** The rows of a statement of any kind. */
export async function query<Row>(on: Statements, sql: string, parameters: unknown[] = []): Promise<Row[]> {
  const answer = await on.query<unknown>(sql, parameters);
  return (isCounted(answer) ? answer[0] : answer) as Row[];
}

/** The names of the statements that `queryPrepared` has been given. Their texts are constants, so they are few. */
const prepared = new Map<string, string>();

/**
 * The rows of a statement that a transaction runs again and again. PostgreSQL parses and plans it once a connection
 * instead of each time, which takes longer than to run it on a few rows. The plan is kept until PostgreSQL has new
 * statistics of its tables. So do not use it to look up rows of a table that grows by thousands of rows a second: a
 * plan that was made for the empty table reads all of it.
 */
export async function queryPrepared<Row extends object>(
  tx: EntityManager,
  sql: string,
  parameters: unknown[],
): Promise<Row[]> {
  let name = prepared.get(sql);
  if (name === undefined) prepared.set(sql, (name = `s${prepared.size + 1}`));
  const client = await connectionOf(tx);
  const { rows } = await client.query<Row>({ name, text: sql, values: parameters });
  return rows;
}

/** How many rows an UPDATE or a DELETE has changed. */
export async function changedRows(on: Statements, sql: string, parameters: unknown[] = []): Promise<number> {
  const answer = await on.query<unknown>(sql, parameters);
  if (!isCounted(answer)) throw new Error('only an UPDATE or a DELETE says how many rows it has changed');
  return answer[1];
}

/** A row is an object, so an array whose first element is an array is no list of rows. */
function isCounted(answer: unknown): answer is [unknown[], number] {
  return Array.isArray(answer) && answer.length === 2 && Array.isArray(answer[0]) && typeof answer[1] === 'number';
}

/** The pool of a data source. */
export function poolOf({ driver }: DataSource): Pool {
  return (driver as unknown as { master: Pool }).master;
}

/** The connection that a transaction runs on. */
export async function connectionOf(tx: EntityManager): Promise<Client> {
  return (await tx.queryRunner!.connect()) as Client;
}

/**
 * Runs statements of a transaction that may take longer than a service's own, for example those that prove all books.
 * Each may take `timeoutMs`, on the server and on this side. On the server, the limit holds for the transaction's other
 * statements too. When `stopped` is aborted, the current statement fails at once with the signal's reason, because its
 * connection is broken off. `timeoutMs` is an integer. The snapshot of the transaction is the snapshot of the first
 * statement that follows.
 */
export async function withStatementTimeout(
  tx: EntityManager,
  timeoutMs: number,
  stopped?: AbortSignal,
): Promise<Query> {
  // Not by `set_config`, which would take the transaction's snapshot.
  await tx.query(`SET LOCAL statement_timeout = ${timeoutMs}`);
  const client = await connectionOf(tx);
  const answerTimeoutMs = timeoutMs + ANSWER_TIMEOUT_MS - STATEMENT_TIMEOUT_MS;
  const stop = () => breakOff(client, stopped!.reason as Error);
  return async <R extends object>(text: string, values: unknown[]) => {
    stopped?.throwIfAborted();
    stopped?.addEventListener('abort', stop);
    try {
      const { rows } = await client.query<R>({ text, values, query_timeout: answerTimeoutMs } as QueryConfig);
      return rows;
    } catch (error) {
      stopped?.throwIfAborted();
      throw error;
    } finally {
      stopped?.removeEventListener('abort', stop);
    }
  };
}

export type Query = <R extends object>(text: string, values: unknown[]) => Promise<R[]>;

/** A connection that breaks off when an answer is given up, and that never ends the process when it breaks. */
export class BreakableClient extends Client {
  constructor(config?: string | ClientConfig) {
    super(config);
    // The query that fails on a broken connection reports it. Without a listener it would end the process.
    this.on('error', () => {});
  }

  override query(...parameters: unknown[]): never {
    const answer: unknown = asksForPromise(parameters)
      ? this.promised(...parameters)
      : Reflect.apply(super.query.bind(this), this, parameters);
    if (answer instanceof Promise)
      answer.catch((error: unknown) => {
        if (isSilence(error)) breakOff(this, error);
      });
    return answer as never;
  }

  /**
   * What `query` does without a callback, but node-postgres makes neither the promise nor the timer: it would assign a
   * function to the query, and all that this function refers to would get old (see `queryWithin`).
   */
  private async promised(config: string | TimedQuery, values?: unknown[]): Promise<unknown> {
    const { query_timeout: own, ...query }: TimedQuery = typeof config === 'string' ? { text: config } : config;
    const limits = (this as unknown as { connectionParameters: Limits }).connectionParameters;
    const ofConnection = limits.query_timeout;
    limits.query_timeout = false;
    let answer: Promise<unknown>;
    try {
      answer = queryWithin(this, values ? { ...query, values } : query, own ?? (ofConnection || null));
    } finally {
      limits.query_timeout = ofConnection;
    }
    try {
      return await answer;
    } catch (error) {
      // As node-postgres does: the trace leads to the caller, not to the parser of the answer.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    }
  }
}

/** The limits of a connection of node-postgres. False: none. */
interface Limits {
  query_timeout: number | false;
}

type TimedQuery = QueryConfig & { query_timeout?: number };

/** Neither a callback nor a query that was made elsewhere, such as a COPY. */
function asksForPromise(parameters: unknown[]): parameters is [string | QueryConfig, unknown[]?] {
  const [config] = parameters;
  if (parameters.some((parameter) => typeof parameter === 'function')) return false;
  if (typeof config === 'string') return true;
  return typeof config === 'object' && config !== null && !('submit' in config) && !('callback' in config);
}

/** Fails the current query. The holder returns the connection to the pool as broken, and the pool replaces it. */
function breakOff(client: Client, reason: Error): void {
  client.emit('error', reason);
  client.connection.stream.destroy();
}

/** node-postgres gives this error no code. */
function isSilence(error: unknown): error is Error {
  return error instanceof Error && error.message === 'Query read timeout';
}
