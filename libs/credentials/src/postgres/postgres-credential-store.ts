import { Socket } from 'node:net';
import { UnavailableError } from '@tollgate/contracts';
import { connectionConfig, outliveConnections, retryOnTimeout } from '@tollgate/postgres';
import { Pool, type PoolConfig } from 'pg';
import { CredentialMemory } from '../credential-memory';
import { CredentialStore, type CredentialRecord } from '../credential-store';
import { ChangeFeed } from './change-feed';
import { RECORD_COLUMNS, toRecord, toRow, type RecordRow } from './record-row';

export interface PostgresCredentialStoreOptions {
  url: string;
  applicationName: string;
  /** The time limit of a connection, and of a statement. For tests. */
  callTimeoutMs?: number;
}

/** The limit for connecting and asking together: the longest wait of a request with an unknown value. */
const READ_CONNECT_TIMEOUT_MS = 400;
const READ_TIMEOUT_MS = 500;
/** The first one twice, and the second: together below the deadline of a request to auth, which waits for its `put`. */
const WRITE_CONNECT_TIMEOUT_MS = 500;
const WRITE_TIMEOUT_MS = 1_500;
const CLOSE_TIMEOUT_MS = 1_000;
const WRITE_CONNECTIONS = 2;
const MAX_RECORDS_PER_WRITE = 1_000;

const READ = `SELECT ${RECORD_COLUMNS} FROM credential WHERE hash = ANY($1::text[])`;

/** The row lock of `last_change` comes first, because the inserted rows depend on it. */
const WRITE = `
  WITH this AS (UPDATE last_change SET number = number + 1 RETURNING number)
  INSERT INTO credential AS known (${RECORD_COLUMNS}, change)
  SELECT DISTINCT ON (record.hash) record.*, this.number
    FROM this, jsonb_to_recordset($1::jsonb) AS record (hash text, kind text, id text, tenant_id text, plan text,
         profile text, scopes text[], models text[], expires_at_ms bigint, revoked_at_ms bigint, version bigint)
   ORDER BY record.hash, record.version DESC
  ON CONFLICT (hash) DO UPDATE
     SET kind = EXCLUDED.kind, id = EXCLUDED.id, tenant_id = EXCLUDED.tenant_id, plan = EXCLUDED.plan,
         profile = EXCLUDED.profile, scopes = EXCLUDED.scopes, models = EXCLUDED.models,
         expires_at_ms = EXCLUDED.expires_at_ms, revoked_at_ms = EXCLUDED.revoked_at_ms,
         version = EXCLUDED.version, change = EXCLUDED.change
   WHERE known.version < EXCLUDED.version`;

/**
 * The credential store of the standalone form: a table in schema `credentials`, records in memory in front of it, and a
 * feed of changes that keeps them fresh. Connections: one for reads, one for the feed, and up to two for writes while
 * there are any.
 */
export class PostgresCredentialStore extends CredentialStore {
  private readonly sockets = new Set<Socket>();
  private readonly reads: Pool;
  private readonly writes: Pool;
  private readonly memory: CredentialMemory;
  private readonly feed: ChangeFeed;
  private started = false;

  constructor(options: PostgresCredentialStoreOptions) {
    super();
    const config = connectionConfig({ ...options, schema: 'credentials' });
    const { callTimeoutMs } = options;
    this.reads = this.openPool({
      ...config,
      max: 1,
      idleTimeoutMillis: 0,
      connectionTimeoutMillis: callTimeoutMs ?? READ_CONNECT_TIMEOUT_MS,
      query_timeout: callTimeoutMs ?? READ_TIMEOUT_MS,
    });
    this.writes = this.openPool({
      ...config,
      max: WRITE_CONNECTIONS,
      connectionTimeoutMillis: callTimeoutMs ?? WRITE_CONNECT_TIMEOUT_MS,
      query_timeout: callTimeoutMs ?? WRITE_TIMEOUT_MS,
    });
    this.memory = new CredentialMemory(async (hashes) =>
      (await this.reads.query<RecordRow>(READ, [hashes])).rows.map(toRecord),
    );
    this.feed = new ChangeFeed(config, {
      changed: (records) => this.memory.apply(records),
      upTo: (ms) => this.memory.upTo(ms),
      reset: () => this.memory.forgetAll(),
    });
  }

  /** The number of records in memory. */
  get size(): number {
    return this.memory.size;
  }

  async put(records: readonly CredentialRecord[]): Promise<void> {
    for (let from = 0; from < records.length; from += MAX_RECORDS_PER_WRITE) {
      const batch = records.slice(from, from + MAX_RECORDS_PER_WRITE);
      // A busy machine may take long for a new connection. Nothing was sent then, so a second attempt does no harm.
      await this.connectForWrites().catch(() => this.connectForWrites());
      await this.writes.query(WRITE, [JSON.stringify(batch.map(toRow))]);
      // In force here at once. The other processes are notified.
      this.memory.apply(batch);
    }
  }

  lookup(hash: string): CredentialRecord | null | Promise<CredentialRecord | null> {
    // Without the feed, a record in memory would never learn of its revocation.
    if (!this.started) return Promise.reject(new UnavailableError('the credential store is not started'));
    return this.memory.lookup(hash);
  }

  async start(): Promise<void> {
    // So that the first request does not wait for a connection.
    await retryOnTimeout(() => this.reads.query('SELECT'));
    await retryOnTimeout(() => this.feed.start());
    this.started = true;
  }

  async close(): Promise<void> {
    this.started = false;
    this.memory.close();
    await this.feed.stop();
    // A dead server does not answer the end of the protocol. After a while the sockets are closed.
    const timer = setTimeout(() => this.sockets.forEach((socket) => socket.destroy()), CLOSE_TIMEOUT_MS);
    await Promise.all([this.reads.end(), this.writes.end()]);
    clearTimeout(timer);
  }

  /** Resolves when a write has a connection that it need not wait for. */
  private async connectForWrites(): Promise<void> {
    (await this.writes.connect()).release();
  }

  private openPool(config: PoolConfig): Pool {
    const stream = () => {
      const socket = new Socket();
      this.sockets.add(socket);
      return socket.once('close', () => this.sockets.delete(socket));
    };
    const pool = new Pool({ ...config, stream });
    outliveConnections(pool);
    return pool;
  }
}
