import { eventually, useTestDatabase } from '@tollgate/testing';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Pool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { isOutage, openDataSource, query, queryPrepared, transaction } from './index';

const database = useTestDatabase();
const open = (options = {}): Promise<DataSource> =>
  openDataSource({ url: database.url, schema: 'console', applicationName: 'outage', poolSize: 1, ...options });

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

/** Ends the connection that is in this state, and returns when its process at the server is gone. */
const endConnection = (state: 'active' | 'idle in transaction'): Promise<void> =>
  eventually(async () => {
    const ended = await database.query(
      `SELECT pg_terminate_backend(pid, 60000) AS gone FROM pg_stat_activity
        WHERE application_name = 'outage' AND datname = current_database() AND state = $1`,
      [state],
    );
    expect(ended).toEqual([{ gone: true }]);
  });

/** A server at which nothing speaks PostgreSQL. */
async function withServer<T>(onConnection: 'silent' | 'closed' | 'away', use: (url: string) => Promise<T>): Promise<T> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).resume();
    if (onConnection === 'closed') socket.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  if (onConnection === 'away') server.close();
  try {
    return await use(`postgres://x@127.0.0.1:${port}/x`);
  } finally {
    server.close();
  }
}

describe('outages', () => {
  let source: DataSource;
  beforeAll(async () => {
    source = await open();
  });
  afterAll(() => source.destroy());

  it.each(['silent', 'closed', 'away'] as const)('a server that is %s is an outage', async (what) => {
    await withServer(what, async (connectionString) => {
      const pool = new Pool({ connectionString, connectionTimeoutMillis: 200 });
      const error = await failure(pool.query('SELECT 1'));
      expect([String(error), isOutage(error)]).toEqual([String(error), true]);
      await pool.end();
    });
  });

  it('a pool whose connections are all in use is one, and so is a server whose socket does not exist', async () => {
    const full = new Pool({ connectionString: database.url, max: 1 });
    const client = await full.connect();
    full.options.connectionTimeoutMillis = 100;
    expect(isOutage(await failure(full.query('SELECT 1')))).toBe(true);
    client.release();
    await full.end();
    expect(isOutage(await failure(full.query('SELECT 1')))).toBe(true);
    const away = new Pool({ connectionString: 'postgres://x@/x?host=/nowhere' });
    expect(isOutage(await failure(away.query('SELECT 1')))).toBe(true);
    await away.end();
  });

  it('a connection that the server ends within a statement is one', async () => {
    const within = failure(query(source, 'SELECT pg_sleep(600)'));
    await endConnection('active');
    expect(isOutage(await within)).toBe(true);
  });

  it.each<[string, (tx: EntityManager) => Promise<unknown>]>([
    ['a statement', (tx) => query(tx, 'SELECT 1')],
    ['a statement of TypeORM', (tx) => tx.createQueryBuilder().select('1').from('pg_class', 'c').getRawMany()],
    ['a prepared one', (tx) => queryPrepared(tx, 'SELECT 1', [])],
  ])('a connection that the server ends in a transaction before %s is one', async (_, statement) => {
    const between = transaction(source, async (tx) => {
      await query(tx, 'SELECT 1');
      await endConnection('idle in transaction');
      await statement(tx);
    });
    expect(isOutage(await failure(between))).toBe(true);
  });

  it('a statement without an answer is one', async () => {
    // On a busy machine, opening may take longer as well.
    const impatient = await eventually(() => open({ answerTimeoutMs: 100 }));
    expect(isOutage(await failure(query(impatient, 'SELECT pg_sleep(600)')))).toBe(true);
    await endConnection('active');
    await impatient.destroy();
  });

  it('a mistake in a statement is none, and neither is a refused password, a missing file or another error', async () => {
    for (const sql of [
      'SELECT',
      'SELECT 1 / 0',
      'SELECT * FROM nowhere',
      `SELECT '\0'`,
      `DO 'BEGIN ASSERT false; END'`,
    ])
      expect([sql, isOutage(await failure(query(source, sql)))]).toEqual([sql, false]);
    const missing = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' });
    for (const error of [{ code: '28P01' }, { code: '57014' }, missing, new Error('x'), null, undefined, 'text', {}])
      expect([error, isOutage(error)]).toEqual([error, false]);
  });
});
