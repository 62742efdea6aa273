import { TOPICS } from '@tollgate/contracts';
import { listStoredDead, replayStoredDead, storedOriginOf, type StoredDeadLetter } from '@tollgate/messaging';
import { findEmbeddedPostgres, OptionalDatabaseSettings, sqlState } from '@tollgate/postgres';
import { readSettings, SettingsError } from '@tollgate/runtime';
import { resolve } from 'node:path';
import { Failure, UsageFailure } from '../command/failure';
import type { DeadStore, ShownLetter } from './dead';

const UNREACHABLE = 'database_unavailable';
/** The SQLSTATEs of a missing schema and a missing table. */
const NO_TABLE = ['3F000', '42P01'];

/**
 * The database of a standalone form: DATABASE_URL, or the embedded server that runs on its data directory
 * (TOLLGATE_DATA_DIR, `.tollgate`). Throws UsageFailure if DATABASE_URL is no URL, and Failure if no server is found.
 */
export async function findDatabase(env: NodeJS.ProcessEnv): Promise<string> {
  const directory = resolve(env['TOLLGATE_DATA_DIR'] || '.tollgate');
  const url = databaseUrl(env) ?? (await orFailure(() => findEmbeddedPostgres(directory)));
  if (url !== null) return url;
  throw new Failure(
    `No PostgreSQL of a standalone Tollgate runs on ${directory}. Start it with "npm start" and run this in the same ` +
      'folder, as the same user, or set TOLLGATE_DATA_DIR to its data directory, or DATABASE_URL. For the ' +
      'distributed form, set KAFKA_BROKERS.',
    'not_running',
  );
}

function databaseUrl(env: NodeJS.ProcessEnv): string | undefined {
  try {
    return readSettings(env, [OptionalDatabaseSettings]).DATABASE_URL;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageFailure(error.message);
    throw error;
  }
}

/** The quarantined messages in the database of a standalone form. */
export function storedDead(url: string): DeadStore {
  return {
    async list(topic, limit) {
      const wanted = { limit, ...(topic !== undefined && { topic }) };
      const { letters, left } = await orFailure(() => listStoredDead({ url }, wanted));
      return { letters: letters.map(shown), left };
    },
    replay: (topic, origins) => orFailure(() => replayStoredDead({ url }, topic, origins)),
  };
}

function shown(letter: StoredDeadLetter): ShownLetter {
  const { topic, group, reason, at, message } = letter;
  const { data } = (JSON.parse(message) ?? {}) as { data?: Record<string, unknown> | null };
  const key = data?.[TOPICS[topic].key];
  return {
    ...{ topic, origin: storedOriginOf(letter), group, partition: null, offset: null, index: null, at, reason },
    key: typeof key === 'string' ? key : null,
    value: message,
    valueBase64: Buffer.from(message).toString('base64'),
  };
}

async function orFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (NO_TABLE.includes(sqlState(error) ?? ''))
      throw new Failure(
        'The database has no messages of a standalone Tollgate. Correct DATABASE_URL, or set KAFKA_BROKERS for the ' +
          'distributed form.',
        UNREACHABLE,
      );
    // An address with several numbers gives an error without a message.
    const { message, code } = error as NodeJS.ErrnoException;
    throw new Failure(`The database cannot be used: ${message || code}.`, UNREACHABLE);
  }
}
