import { useTestDatabase } from '@tollgate/testing';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { parse } from 'pg-connection-string';
import type { DataSource } from 'typeorm';
import { copyInOn } from './copy-in';
import { openDataSource, query, transaction } from './index';

// Real: PostgreSQL, its pool, and a network between them that swallows packets.
const ANSWER_TIMEOUT_MS = 2_000;
const database = useTestDatabase();

/** Carries connections to the test database. `silence` ends that for those that are open. */
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

  /** Carries nothing more on the open connections. Neither side notices. */
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

  beforeAll(async () => {
    network = new Network();
    const url = await network.url();
    dataSource = await openDataSource({
      url,
      schema: 'public',
      applicationName: 'test',
      poolSize: 1,
      answerTimeoutMs: ANSWER_TIMEOUT_MS,
    });
  });
  afterAll(async () => {
    await dataSource.destroy();
    network.close();
  });

  it('wait longer for an answer than the server lets a statement run, and not for ever', async () => {
    const real = await openDataSource({ url: database.url, schema: 'public', applicationName: 'test', poolSize: 1 });
    const [limits] = await query<{ statement: string; idle: string }>(
      real,
      `SELECT current_setting('statement_timeout') AS statement,
              current_setting('idle_in_transaction_session_timeout') AS idle`,
    );
    expect(limits).toEqual({ statement: '1min', idle: '1min' });
    expect(real.options).toMatchObject({ extra: { query_timeout: 70_000 } });
    await real.destroy();
  });

  it('are given up once, inside a transaction too, and their place in the pool is free again', async () => {
    const failures = jest.spyOn(dataSource.logger, 'logQueryError').mockImplementation(() => {});
    const silenced = transaction(dataSource, async (tx) => {
      await tx.query('SELECT 1');
      network.silence();
      await tx.query('SELECT 2');
    });
    await expect(silenced).rejects.toThrow('Query read timeout');
    const failed = failures.mock.calls.map(([error, statement]) => ({ statement, error: String(error) }));
    // No rollback waited for an answer too: the connection was broken off before it.
    expect(failed).toEqual([{ statement: 'SELECT 2', error: 'Error: Query read timeout' }]);
    failures.mockRestore();
    expect(await dataSource.query('SELECT 3 AS three')).toEqual([{ three: 3 }]);

    network.silence();
    await expect(dataSource.query('SELECT 4')).rejects.toThrow('Query read timeout');
    expect(await dataSource.query('SELECT 5 AS five')).toEqual([{ five: 5 }]);
  });

  it('are given up for a COPY too', async () => {
    const failures = jest.spyOn(dataSource.logger, 'logQueryError').mockImplementation(() => {});
    const silenced = transaction(dataSource, async (tx) => {
      await tx.query('CREATE TEMPORARY TABLE copied (n int)');
      const copyIn = await copyInOn(tx);
      network.silence();
      await copyIn('COPY copied FROM STDIN', '1\n');
    });
    await expect(silenced).rejects.toThrow('Query read timeout');
    failures.mockRestore();
  });
});
