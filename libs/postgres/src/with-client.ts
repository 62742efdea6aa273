import { Client } from 'pg';
import { connectionConfig, type DatabaseOptions } from './database';

/** Runs `work` on its own connection, which is closed afterwards. Rejects if it cannot connect, or loses it. */
export async function withClient<T>(
  options: Omit<DatabaseOptions, 'poolSize'>,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(connectionConfig(options));
  // A lost connection fails the query. Without a listener, it would also end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
