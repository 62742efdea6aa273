import { Client } from 'pg';
import { usePostgresServer } from './postgres-server';

const CONNECT_TIMEOUT_MS = 10_000;
/** The time after which a connection to a silent server is given up. */
const SILENCE_MS = 500;

describe('a PostgreSQL in a container', () => {
  const postgres = usePostgresServer({ settings: { max_connections: '17' } });

  it('accepts settings, and keeps its data and its port through stop and kill', async () => {
    await query('CREATE TABLE kept (value int)');
    await postgres.stop();
    await postgres.start();
    await query('INSERT INTO kept VALUES (7)');
    await postgres.kill();
    await postgres.start();
    expect(await query(`SELECT value, current_setting('max_connections') AS max FROM kept`)).toEqual([
      { value: 7, max: '17' },
    ]);
  });

  it('accepts no client while paused or disconnected', async () => {
    await postgres.pause();
    await expect(query('SELECT 1', SILENCE_MS)).rejects.toThrow(/timeout/);
    await postgres.unpause();
    await postgres.disconnect();
    await expect(query('SELECT 1')).rejects.toThrow(/ECONNREFUSED|ECONNRESET|terminated/);
    await postgres.connect();
    expect(await query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  async function query(sql: string, connectionTimeoutMillis = CONNECT_TIMEOUT_MS): Promise<unknown[]> {
    const client = new Client({ connectionString: postgres.url, connectionTimeoutMillis });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }
});
