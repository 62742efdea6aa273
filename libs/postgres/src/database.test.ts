import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useTestDatabase } from '@tollgate/testing';
import { Pool } from 'pg';
import { migrate, MigrationError, openDataSource, outliveConnections, transaction } from './index';

const database = useTestDatabase();
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'migrations-'));
  await writeFile(join(directory, '001_a.sql'), 'CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL);');
});
afterAll(() => rm(directory, { recursive: true }));

describe('migrations', () => {
  it('run once however many processes start at the same time, and extend a database with data in it', async () => {
    const options = { url: database.url, schema: 'mig', directory };
    const results = await Promise.all([migrate(options), migrate(options), migrate(options)]);
    expect(results.flatMap((result) => result.applied)).toEqual(['001_a.sql']);
    await database.query('INSERT INTO mig.a VALUES (1, 0)');
    await writeFile(join(directory, '002_b.sql'), 'ALTER TABLE a ADD COLUMN label text NOT NULL DEFAULT $$x$$;');
    expect((await migrate(options)).applied).toEqual(['002_b.sql']);
    expect(await database.query('SELECT * FROM mig.a')).toEqual([{ id: 1, n: 0, label: 'x' }]);
  });

  it('refuse a schema that a newer version migrated, and an applied file that was changed', async () => {
    const options = { url: database.url, schema: 'mig', directory };
    await database.query(`INSERT INTO mig.schema_migration VALUES (3, '003_future.sql', '')`);
    await expect(migrate(options)).rejects.toThrow(MigrationError);
    await database.query('DELETE FROM mig.schema_migration WHERE number = 3');
    await writeFile(join(directory, '002_b.sql'), 'SELECT 1;');
    await expect(migrate(options)).rejects.toThrow(/changed after it was applied/);
  });

  it('leave nothing behind of a file that fails', async () => {
    const other = await mkdtemp(join(tmpdir(), 'migrations-'));
    await writeFile(join(other, '001_x.sql'), 'CREATE TABLE x (id int); SELECT 1/0;');
    await expect(migrate({ url: database.url, schema: 'bad', directory: other })).rejects.toThrow(/division by zero/);
    expect(await database.query(`SELECT to_regclass('bad.x') AS t`)).toEqual([{ t: null }]);
    await rm(other, { recursive: true });
  });
});

it('no connection lets PostgreSQL compile statements, whatever the server does by default', async () => {
  const source = await openDataSource({ url: database.url, schema: 'public', applicationName: 'test', poolSize: 1 });
  const settings = await source.query(`SELECT setting, source FROM pg_settings WHERE name = 'jit'`);
  expect(settings).toEqual([{ setting: 'off', source: 'client' }]);
  await source.destroy();
});

describe('transaction', () => {
  it('repeats a whole transaction after a serialization failure, and passes other errors on at once', async () => {
    const dataSource = await openDataSource({ url: database.url, schema: 'mig', applicationName: 'test', poolSize: 3 });
    try {
      let runs = 0;
      // None writes before all three have read, so two of them must run again.
      let haveRead: () => void;
      const allHaveRead = new Promise<void>((resolve) => (haveRead = resolve));
      const increment = () =>
        transaction(dataSource, async (tx) => {
          const run = ++runs;
          await tx.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
          const [row] = await tx.query('SELECT n FROM a WHERE id = 1');
          if (run === 3) haveRead();
          await allHaveRead;
          await tx.query('UPDATE a SET n = $1 WHERE id = 1', [row.n + 1]);
        });
      await Promise.all([increment(), increment(), increment()]);
      expect(await database.query('SELECT n FROM mig.a')).toEqual([{ n: 3 }]);
      expect(runs).toBeGreaterThan(3);
      await expect(transaction(dataSource, (tx) => tx.query('SELECT 1/0'))).rejects.toThrow(/division by zero/);
    } finally {
      await dataSource.destroy();
    }
  });
});

it('a process survives a connection that breaks between two queries of its user', async () => {
  const pool = new Pool({ connectionString: database.url, max: 1 });
  outliveConnections(pool);
  const client = await pool.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const ended = new Promise((resolve) => client.once('end', resolve));
  await database.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid]);
  await ended;
  await expect(client.query('SELECT 1')).rejects.toThrow();
  client.release(true);
  expect((await pool.query<{ one: number }>('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  await pool.end();
});
