import { connectionConfig, outliveConnections, queryWithin } from '@tollgate/postgres';
import { UnavailableError } from '@tollgate/contracts';
import { type Client, DatabaseError, Pool, type PoolClient } from 'pg';

const CONNECT_TIMEOUT_MS = 1_000;
/** One batched call, including waits for locks. */
const CALL_TIMEOUT_MS = 1_000;
/** Sweep, balance updates and snapshot, which no request waits for. */
const BACKGROUND_TIMEOUT_MS = 10_000;
/** This side gives up on an answer this long after the server's own timeout. */
const ANSWER_GRACE_MS = 500;
/**
 * For admit, look, recall, extend, void, progress and settle: one call of each at a time, plus a settlement that waits
 * for the disk. The rare calls beside them (expected_ends, take_call) wait for a free one.
 */
const MAX_CALL_CONNECTIONS = 8;
const MAX_BACKGROUND_CONNECTIONS = 2;
const MAX_TRIES = 3;

/**
 * deadlock_detected, serialization_failure, lock_not_available, unique_violation (the same id twice at the same
 * instant): the whole call may be repeated.
 */
const RETRYABLE = new Set(['40P01', '40001', '55P03', '23505']);
/** connection_exception, insufficient_resources, operator_intervention (shutdown, timeout), system_error */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58']);

/** Rows as arrays of strings, as the wire carries them. */
export type Row = readonly (string | null)[];

export interface Call {
  /** The name of the prepared statement. */
  name: string;
  text: string;
  values: unknown[];
}

/**
 * The store's connections. No commit waits for the disk: that would keep the tenant's row locked meanwhile. A call that
 * must be durable is followed by a flush: a synchronous commit of an empty record behind all others in the log. No row
 * is locked during the flush, so a settlement that waits for the disk delays nobody.
 * Call and flush use the same connection. A crash of the server in between breaks it, so a flush on the recovered
 * server is never taken for the flush of lost changes.
 */
export class Connections {
  private readonly calls: Pool;
  private readonly background: Pool;

  constructor(
    url: string,
    private readonly callTimeoutMs = CALL_TIMEOUT_MS,
  ) {
    // The functions look rows up by key, so a kept plan must not be one that was made for an empty table. Plans are
    // kept: otherwise PostgreSQL would plan some statements for each call, because it estimates a plan for arrays of
    // known lengths as cheaper.
    const lookups = '-c synchronous_commit=off -c enable_seqscan=off -c plan_cache_mode=force_generic_plan';
    // A longer limit for the call also applies to connecting.
    const connectTimeoutMs = Math.max(CONNECT_TIMEOUT_MS, callTimeoutMs);
    this.calls = pool(url, 'tollgate-admission', MAX_CALL_CONNECTIONS, callTimeoutMs, lookups, connectTimeoutMs);
    this.background = pool(
      url,
      'tollgate-admission-background',
      MAX_BACKGROUND_CONNECTIONS,
      BACKGROUND_TIMEOUT_MS,
      lookups,
      connectTimeoutMs,
    );
  }

  /** Rejects with UnavailableError when PostgreSQL does not answer in time. */
  call(call: Call): Promise<Row[]> {
    return onConnection(this.calls, call, (client) => run(client, call, this.callTimeoutMs + ANSWER_GRACE_MS));
  }

  callInBackground(call: Call): Promise<Row[]> {
    return onConnection(this.background, call, (client) => run(client, call, BACKGROUND_TIMEOUT_MS + ANSWER_GRACE_MS));
  }

  /**
   * Durable when it returns: the call's own changes, and every earlier commit that it saw. After an UnavailableError
   * the call may still have succeeded, so repeat it. The flush is sent with the call, which saves a round trip.
   */
  callDurably(call: Call): Promise<Row[]> {
    const answerTimeoutMs = this.callTimeoutMs + ANSWER_GRACE_MS;
    return onConnection(this.calls, call, (client) => run(client, call, answerTimeoutMs, FLUSH));
  }

  /** The same for a call that may see nothing: without rows it waits for no disk. */
  callDurablyIfAny(call: Call): Promise<Row[]> {
    return runDurablyIfAny(this.calls, call, this.callTimeoutMs + ANSWER_GRACE_MS);
  }

  /** The same in the background. */
  callDurablyInBackground(call: Call): Promise<Row[]> {
    return runDurablyIfAny(this.background, call, BACKGROUND_TIMEOUT_MS + ANSWER_GRACE_MS);
  }

  /** Rejects with the reason when no durable write is possible: a full disk, a server in recovery, a missing right. */
  async probeWrite(): Promise<void> {
    try {
      await this.callDurably({ name: 'probe_write', text: 'SELECT probe_write()', values: [] });
    } catch (error) {
      const { message } = ((error as Error).cause ?? error) as Error;
      throw new UnavailableError(`the admission store cannot write: ${message}`);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.calls.end(), this.background.end()]);
  }
}

function pool(
  url: string,
  applicationName: string,
  max: number,
  timeoutMs: number,
  settings: string,
  connectionTimeoutMillis: number,
): Pool {
  const config = connectionConfig({ url, schema: 'admission', applicationName });
  const made = new Pool({
    ...config,
    options: `${config.options} ${settings} -c statement_timeout=${timeoutMs}`,
    connectionTimeoutMillis,
    // For the flush that is sent with a call.
    pipeline: true,
    // Kept while idle, instead of for 10 s. The first call of a connection takes ten times as long, because its server
    // process compiles the functions. After a pause, requests would wait for that on every connection.
    idleTimeoutMillis: 0,
    max,
  });
  outliveConnections(made);
  return made;
}

const FLUSH: Call = {
  name: 'flush',
  text: `SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'tollgate', '')`,
  values: [],
};

function runDurablyIfAny(from: Pool, call: Call, answerTimeoutMs: number): Promise<Row[]> {
  return onConnection(from, call, async (client) => {
    const rows = await run(client, call, answerTimeoutMs);
    if (rows.length > 0) await run(client, FLUSH, answerTimeoutMs);
    return rows;
  });
}

async function onConnection(from: Pool, call: Call, work: (client: PoolClient) => Promise<Row[]>): Promise<Row[]> {
  const client = await from.connect().catch((error: unknown) => {
    throw unavailable(call, error);
  });
  let done = false;
  try {
    const rows = await work(client);
    done = true;
    return rows;
  } finally {
    // Not reused after an error: a late answer must not be taken for the next call's. node-postgres would first wait
    // for the missing answers.
    if (!done) (client as unknown as Client).connection.stream.destroy();
    client.release(!done);
  }
}

/** `behind` is sent with the call, and the server runs it afterwards, even if the call fails. */
async function run(client: PoolClient, call: Call, answerTimeoutMs: number, behind?: Call): Promise<Row[]> {
  for (let attempt = 1; ; attempt++) {
    const calling = send(client, call, answerTimeoutMs);
    const following = behind && send(client, behind, 2 * answerTimeoutMs);
    try {
      const [{ rows }] = await Promise.all([calling, following]);
      return rows;
    } catch (error) {
      const state = error instanceof DatabaseError ? (error.code ?? '') : undefined;
      if (state !== undefined && RETRYABLE.has(state) && attempt < MAX_TRIES) {
        await Promise.allSettled([following]);
        continue;
      }
      if (state !== undefined && !UNAVAILABLE_CLASSES.has(state.slice(0, 2))) throw error;
      throw unavailable(call, error);
    }
  }
}

function send(client: PoolClient, call: Call, answerTimeoutMs: number) {
  const query = { ...call, rowMode: 'array' as const, types: AS_TEXT };
  return queryWithin<(string | null)[]>(client, query, answerTimeoutMs);
}

function unavailable(call: Call, cause: unknown): UnavailableError {
  return Object.assign(new UnavailableError(`the admission store does not answer (${call.name})`), { cause });
}

const AS_TEXT = { getTypeParser: () => (value: string) => value };
