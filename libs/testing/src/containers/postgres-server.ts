import { Client } from 'pg';
import { imageOf } from './images';
import { TestContainer, useContainer } from './test-container';

const PASSWORD = 'tollgate';
const CONNECT_TIMEOUT_MS = 2_000;

export interface PostgresOptions {
  /** Settings of the server, such as `{ max_connections: '20' }`. */
  settings?: Record<string, string>;
  /** Files of the container: path in the container to content. */
  files?: Record<string, string>;
  /** The folder of the data in the container. By default a volume, which cannot be renamed. */
  dataDirectory?: string;
}

/** A real PostgreSQL 17 with an empty database `tollgate`. It keeps its data through stop, kill and start. */
export class PostgresServer extends TestContainer {
  /** URL of the database `tollgate`, as superuser. */
  get url(): string {
    return urlOf(this.port);
  }
}

/**
 * Starts a PostgreSQL for the calling test file, which may stop, kill, pause and disconnect it. Other tests use
 * `useTestDatabase`, which is ready at once.
 */
export function usePostgresServer({ settings = {}, files = {}, dataDirectory }: PostgresOptions = {}): PostgresServer {
  return useContainer(
    new PostgresServer(([port = 0]) => ({
      image: imageOf('POSTGRES'),
      command: [
        'postgres',
        '-p',
        String(port),
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      environment: {
        POSTGRES_PASSWORD: PASSWORD,
        POSTGRES_DB: 'tollgate',
        ...(dataDirectory !== undefined && { PGDATA: dataDirectory }),
      },
      files,
      ports: [port],
      ready: async () => {
        const client = new Client({
          connectionString: urlOf(port),
          connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
          query_timeout: CONNECT_TIMEOUT_MS,
        });
        client.on('error', () => client.end()); // The connection broke while idle: the next attempt reports it.
        await client.connect();
        try {
          await client.query('SELECT 1');
        } finally {
          await client.end();
        }
      },
    })),
  );
}

function urlOf(port: number): string {
  return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/tollgate`;
}
