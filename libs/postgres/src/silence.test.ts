import { eventually, useTestDatabase } from '@tollgate/testing';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Pool } from 'pg';
import { parse } from 'pg-connection-string';
import type { DataSource } from 'typeorm';
import { openDataSource, transaction } from './index';

// Real: PostgreSQL, its pool, and a network in between that drops what it should carry.
const QUERY_TIMEOUT_MS = 2_000;
const database = useTestDatabase();

/** Carries connections to the test database until they are silenced. Later connections are carried. */
class Network {
  private readonly server: Server;
  private readonly carried = new Set<[Socket, Socket]>();

  constructor() {
    const { host, port } = parse(database.url);
    this.server = createServer((client) => {
      const upstream = connect(`${host}/.s.PGSQL.${port}`);
      const pair: [Socket, Socket] = [client, upstream];
      this.carried.add(pair);
      for (const socket of pair) socket.on('error', () => {}).once('close', () => this.end(pair));
      client.pipe(upstream).pipe(client);
    });
  }

  async url(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    const { user, password, database: name } = parse(database.url);
    const { port } = this.server.address() as AddressInfo;
    return `postgres://${user}:${encodeURIComponent(password ?? '')}@127.0.0.1:${port}/${name}`;
  }

  /** Stops carrying the existing connections. Neither side notices. */
  silence(): void {
    for (const [client, upstream] of this.carried) {
      client.unpipe().resume();
      upstream.unpipe().resume();
    }
  }

  cut(): void {
    for (const pair of this.carried) this.end(pair);
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private end(pair: [Socket, Socket]): void {
    this.carried.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}

describe('connections that fall silent', () => {
  let network: Network;
  let dataSource: DataSource;
  let pool: Pool;

  beforeAll(async () => {
    network = new Network();
    const url = await network.url();
    dataSource = await openDataSource({ url, schema: 'public', applicationName: 'test', poolSize: 1 });
    pool = (dataSource.driver as unknown as { master: Pool }).master;
  });
  afterAll(async () => {
    await dataSource.destroy();
    network.close();
  });

  it('are waited for longer than the server lets a statement run, and not forever', async () => {
    const [limits] = await dataSource.query<{ statement: string; idle: string }[]>(
      `SELECT current_setting('statement_timeout') AS statement,
              current_setting('idle_in_transaction_session_timeout') AS idle`,
    );
    expect(limits).toEqual({ statement: '1min', idle: '1min' });
    expect(pool.options.query_timeout).toBe(70_000);
  });

  it('are given up once, even within a transaction, and the pool has its place again', async () => {
    // A shorter limit for connections that are made from now on.
    pool.options.query_timeout = QUERY_TIMEOUT_MS;
    network.cut();
    await eventually(() => expect(pool.totalCount).toBe(0));

    let beganMs = 0;
    const silenced = transaction(dataSource, async (tx) => {
      await tx.query('SELECT 1');
      network.silence();
      beganMs = performance.now();
      await tx.query('SELECT 2');
    });
    await expect(silenced).rejects.toThrow('Query read timeout');
    // The rollback was not waited for either.
    expect(performance.now() - beganMs).toBeLessThan(2 * QUERY_TIMEOUT_MS);
    expect(await dataSource.query('SELECT 3 AS three')).toEqual([{ three: 3 }]);
    expect(pool.totalCount).toBe(1);

    network.silence();
    await expect(dataSource.query('SELECT 4')).rejects.toThrow('Query read timeout');
    expect(await dataSource.query('SELECT 5 AS five')).toEqual([{ five: 5 }]);
  });
});
