import { Client } from 'pg';

/** Any number that no other advisory lock of the server uses. */
const LOCK = 5_100_913;

/**
 * Starts a deployment while no other test file of this run starts one. A start uses all cores for 20 s, and two at once
 * might exceed the limits of services that wait for their servers.
 */
export async function startInTurn<T>(start: () => Promise<T>): Promise<T> {
  // The server of all tests. The lock ends with the connection, so it survives no process.
  const client = new Client({ connectionString: process.env['TOLLGATE_TEST_DATABASE_URL'] });
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    return await start();
  } finally {
    await client.end();
  }
}
