import { connectionConfig, outliveConnections } from '@tollgate/postgres';
import { UnavailableError } from '@tollgate/contracts';
import { DatabaseError, Pool, type ClientBase } from 'pg';

const CONNECT_TIMEOUT_MS = 1_000;
/** One batched call, waiting for locks included. */
const CALL_TIMEOUT_MS = 1_000;
/** Sweep, news and snapshot: not in the way of a request. */
const BACKGROUND_TIMEOUT_MS = 10_000;
/** How much later than the server's own timeout this side gives up on an answer. */
const ANSWER_GRACE_MS = 500;
/**
 * admit, look, extend, void, progress and settle: one call of each in flight at a time, and one settlement may wait for
 * the disk beside them.
 */
const MAX_CALL_CONNECTIONS = 7;
const MAX_BACKGROUND_CONNECTIONS = 2;
const MAX_TRIES = 3;

/**
 * deadlock_detected, serialization_failure, lock_not_available, unique_violation (the same id twice at the same
 * instant): the call as a whole may be tried again.
 */
const RETRYABLE = new Set(['40P01', '40001', '55P03', '23505']);
/** connection_exception, insufficient_resources, operator_intervention (shutdown, timeout), system_error */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58']);

/** Rows as arrays of strings, as they come from the wire. */
export type Row = readonly (string | null)[];

export interface Call {
  /** Of the prepared statement. */
  name: string;
  text: string;
  values: unknown[];
}

/**
 * The store's connections. None waits for the disk when it commits: that would keep the tenant's row locked for so
 * long. What must be durable is followed by a flush: a commit that is waited for, of a record without content behind
 * all others in the log; no row is locked meanwhile, so a settlement that waits for the disk holds up nobody. Call and
 * flush go over the same connection: a crash of the server in between breaks it, so the flush of a server that has lost
 * the call's changes can never be taken for theirs.
 */
export class Connections {
  private readonly calls: Pool;
  private readonly background: Pool;

  constructor(
    url: string,
    private readonly callTimeoutMs = CALL_TIMEOUT_MS,
  ) {
    // The functions look rows up by key: plans that are kept must not be those of the day when the table was empty.
    const lookups = '-c synchronous_commit=off -c enable_seqscan=off';
    // Who has longer for a call has it for a connection too.
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

  /** Rejects with UnavailableError when Postgres does not answer in time. */
  call(call: Call): Promise<Row[]> {
    return run(this.calls, call, this.callTimeoutMs + ANSWER_GRACE_MS);
  }

  callInBackground(call: Call): Promise<Row[]> {
    return run(this.background, call, BACKGROUND_TIMEOUT_MS + ANSWER_GRACE_MS);
  }

  /**
   * Durable when it returns: the call's own changes and every earlier commit that it saw. After an UnavailableError it
   * may have happened all the same; repeat it.
   */
  callDurably(call: Call): Promise<Row[]> {
    return runDurably(this.calls, call, this.callTimeoutMs + ANSWER_GRACE_MS);
  }

  /** The same in the background; nothing to wait for when the call gives no rows. */
  callDurablyInBackground(call: Call): Promise<Row[]> {
    return runDurably(this.background, call, BACKGROUND_TIMEOUT_MS + ANSWER_GRACE_MS);
  }

  /**
   * Rejects with the reason when nothing can be written durably now: a full disk, a server in recovery, a right that is
   * missing.
   */
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

async function runDurably(from: Pool, call: Call, answerTimeoutMs: number): Promise<Row[]> {
  const client = await from.connect().catch((error: unknown) => {
    throw unavailable(call, error);
  });
  let done = false;
  try {
    const rows = await run(client, call, answerTimeoutMs);
    if (rows.length > 0) await run(client, FLUSH, answerTimeoutMs);
    done = true;
    return rows;
  } finally {
    // Not reused after an error: what it may still be waiting for must not answer the next call.
    client.release(!done);
  }
}

async function run(from: Pool | ClientBase, call: Call, answerTimeoutMs: number): Promise<Row[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      const query = { ...call, rowMode: 'array' as const, types: AS_TEXT, query_timeout: answerTimeoutMs };
      const { rows } = await from.query<(string | null)[]>(query);
      return rows;
    } catch (error) {
      const state = error instanceof DatabaseError ? (error.code ?? '') : undefined;
      if (state !== undefined && RETRYABLE.has(state) && attempt < MAX_TRIES) continue;
      if (state !== undefined && !UNAVAILABLE_CLASSES.has(state.slice(0, 2))) throw error;
      throw unavailable(call, error);
    }
  }
}

function unavailable(call: Call, cause: unknown): UnavailableError {
  return Object.assign(new UnavailableError(`the admission store does not answer (${call.name})`), { cause });
}

const AS_TEXT = { getTypeParser: () => (value: string) => value };
