import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

const LEAK_WAIT_MS = 60_000;

export interface TestDatabase {
  /** URL of a new database with all schemas and no rows. */
  url: string;
  query<T extends object = Record<string, unknown>>(sql: string, values?: unknown[]): Promise<T[]>;
}

/**
 * Gives the calling test file its own database on a real PostgreSQL. It is a clone of the migrated template of Jest's
 * global set-up. After the file it is dropped, and the file fails if a connection is still open (a leaked pool).
 */
export function useTestDatabase(): TestDatabase {
  const name = `test_${randomBytes(6).toString('hex')}`;
  const adminUrl = process.env['TOLLGATE_TEST_DATABASE_URL'] ?? '';
  const url = withDatabase(adminUrl, name);
  let client: Client;
  beforeAll(async () => {
    if (!adminUrl)
      throw new Error('TOLLGATE_TEST_DATABASE_URL is not set: run the tests through the root jest.config.mjs');
    // Takes half of the processor time that the default takes, which writes all pages to the log as well.
    const clone = `CREATE DATABASE ${name} TEMPLATE tollgate_template STRATEGY FILE_COPY`;
    await admin(adminUrl, (server) => server.query(clone));
    client = new Client({ connectionString: url, application_name: 'test' });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await admin(adminUrl, async (server) => {
      const leaked = await connectionsAfter(server, name, LEAK_WAIT_MS);
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
      if (leaked.length > 0) throw new Error(`connections left open at the end of the file: ${leaked.join(', ')}`);
    });
  });
  return { url, query: async (sql, values) => (await client.query(sql, values)).rows };
}

/** Replaces the database name in `url`. */
export function withDatabase(url: string, database: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${database}`);
}

async function admin(url: string, work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function connectionsAfter(server: Client, database: string, waitMs: number): Promise<string[]> {
  const until = Date.now() + waitMs;
  for (;;) {
    const { rows } = await server.query<{ name: string }>(
      `SELECT application_name AS name FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
      [database],
    );
    if (rows.length === 0 || Date.now() > until) return rows.map((row) => row.name);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
