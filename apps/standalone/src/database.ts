import { MIGRATIONS as ADMISSION } from '@tollgate/admission';
import { MIGRATIONS as AUTH } from '@tollgate/auth';
import { MIGRATIONS as BILLING } from '@tollgate/billing';
import { MIGRATIONS as CONSOLE } from '@tollgate/console';
import { MIGRATIONS as CREDENTIALS } from '@tollgate/credentials';
import { MIGRATIONS as MESSAGES } from '@tollgate/messaging';
import { MIGRATIONS as METERING } from '@tollgate/metering';
import { migrateSchemas, startEmbeddedPostgres, withClient } from '@tollgate/postgres';
import { logger, StartError, type TakeDown } from '@tollgate/runtime';
import type { StandaloneSettings } from './settings';

/** One process at its busiest, with room for people. */
const CONNECTIONS = 80;
/** A worker's pools: 10 of admission, 4 of credentials, 3 of messages and 5 of the console. */
const CONNECTIONS_PER_WORKER = 22;

/** The embedded server, or the one at DATABASE_URL, migrated. */
export async function openDatabase(settings: StandaloneSettings, takeDown: TakeDown): Promise<string> {
  let url = settings.DATABASE_URL;
  const workers = settings.TOLLGATE_WORKERS === 1 ? 0 : settings.TOLLGATE_WORKERS;
  const connections = CONNECTIONS + workers * CONNECTIONS_PER_WORKER;
  if (url === undefined) {
    const server = await startEmbeddedPostgres({
      dataDirectory: settings.TOLLGATE_DATA_DIR,
      settings: { max_connections: String(connections) },
      onGivenUp: endWithoutDatabase,
    }).catch((error: Error) => {
      throw new StartError(error.message, { cause: error });
    });
    takeDown.add('basics', () => server.stop());
    if (server.adopted)
      logger('standalone').info('took over the PostgreSQL of a process that ended without stopping it');
    url = server.url;
  }
  const console = settings.TOLLGATE_CONSOLE ? [CONSOLE] : [];
  await migrateSchemas(url, [ADMISSION, AUTH, METERING, BILLING, CREDENTIALS, MESSAGES, ...console]);
  if (settings.DATABASE_URL !== undefined) await warnOfTooFew(url, connections);
  return url;
}

/** Only warns: it serves until it needs more at once, and others may use the server too. */
async function warnOfTooFew(url: string, connections: number): Promise<void> {
  await withClient({ url, schema: 'public', applicationName: 'tollgate-start' }, async (client) => {
    const { rows } = await client.query<{ accepted: number }>(
      `SELECT current_setting('max_connections')::int
         - current_setting('superuser_reserved_connections')::int AS accepted`,
    );
    const { accepted } = rows[0]!;
    if (accepted < connections)
      logger('standalone').warn(
        { connections, accepted },
        'PostgreSQL may accept too few connections: raise its max_connections, or lower TOLLGATE_WORKERS',
      );
  });
}

/**
 * Nothing can be served any more, and nothing is lost, because every answer is on disk. The exit code tells the
 * process's supervisor.
 */
function endWithoutDatabase({ message }: Error): void {
  process.stderr.write(`tollgate: The embedded PostgreSQL ended and could not be started again: ${message}\n`);
  process.exit(1);
}
