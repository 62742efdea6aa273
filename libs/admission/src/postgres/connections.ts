import { connectionConfig } from '@tollgate/postgres';
import { UnavailableError } from '@tollgate/contracts';
import { DatabaseError, Pool } from 'pg';

const CONNECT_TIMEOUT_MS = 1_000;
/** One batched call, waiting for locks included. */
const CALL_TIMEOUT_MS = 1_000;
/** Sweep, news and snapshot: not in the way of a request. */
const BACKGROUND_TIMEOUT_MS = 10_000;
/** How much later than the server's own timeout this side gives up on an answer. */
const ANSWER_GRACE_MS = 500;
/** admit, extend, void, progress and settle: one call of each in flight at a time. */
const MAX_CALL_CONNECTIONS = 5;
const MAX_FLUSH_CONNECTIONS = 2;
const MAX_BACKGROUND_CONNECTIONS = 2;
const MAX_TRIES = 3;

/** deadlock_detected, serialization_failure, lock_not_available, unique_violation (the same id twice at the same instant): the call as a whole may be tried again. */
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
 * The store's connections. None waits for the disk when it commits: that would keep the tenant's row locked for so long. `flush` waits
 * afterwards, on a connection of its own, for all that was committed before; so a settlement that waits for the disk holds up nobody.
 */
export class Connections {
  private readonly calls: Pool;
  private readonly flushes: Pool;
  private readonly background: Pool;

  constructor(url: string) {
    // The functions look rows up by key: plans that are kept must not be those of the day when the table was empty.
    const lookups = '-c synchronous_commit=off -c enable_seqscan=off';
    this.calls = pool(url, 'tollgate-admission', MAX_CALL_CONNECTIONS, CALL_TIMEOUT_MS, lookups);
    this.background = pool(
      url,
      'tollgate-admission-background',
      MAX_BACKGROUND_CONNECTIONS,
      BACKGROUND_TIMEOUT_MS,
      lookups,
    );
    this.flushes = pool(
      url,
      'tollgate-admission-flush',
      MAX_FLUSH_CONNECTIONS,
      CALL_TIMEOUT_MS,
      '-c synchronous_commit=on',
    );
  }

  /** Rejects with UnavailableError when Postgres does not answer in time. */
  call(call: Call): Promise<Row[]> {
    return run(this.calls, call, CALL_TIMEOUT_MS + ANSWER_GRACE_MS);
  }

  callInBackground(call: Call): Promise<Row[]> {
    return run(this.background, call, BACKGROUND_TIMEOUT_MS + ANSWER_GRACE_MS);
  }

  /** Returns when everything that any connection committed before is durable: a commit that is waited for, of a record without content behind all others in the log. */
  async flush(): Promise<void> {
    const call = { name: 'flush', text: `SELECT pg_logical_emit_message(true, 'tollgate', '')`, values: [] };
    await run(this.flushes, call, CALL_TIMEOUT_MS + ANSWER_GRACE_MS);
  }

  async close(): Promise<void> {
    await Promise.all([this.calls.end(), this.flushes.end(), this.background.end()]);
  }
}

function pool(url: string, applicationName: string, max: number, timeoutMs: number, settings: string): Pool {
  const config = connectionConfig({ url, schema: 'admission', applicationName });
  const made = new Pool({
    ...config,
    options: `${config.options} ${settings} -c statement_timeout=${timeoutMs}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    max,
  });
  // An idle connection that breaks is replaced at the next use; without a listener it would end the process.
  made.on('error', () => {});
  return made;
}

async function run(from: Pool, call: Call, answerTimeoutMs: number): Promise<Row[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { rows } = await from.query({
        ...call,
        rowMode: 'array',
        types: AS_TEXT,
        query_timeout: answerTimeoutMs,
      } as never);
      return rows as Row[];
    } catch (error) {
      const state = error instanceof DatabaseError ? (error.code ?? '') : undefined;
      if (state !== undefined && RETRYABLE.has(state) && attempt < MAX_TRIES) continue;
      if (state !== undefined && !UNAVAILABLE_CLASSES.has(state.slice(0, 2))) throw error;
      throw Object.assign(new UnavailableError(`the admission store does not answer (${call.name})`), { cause: error });
    }
  }
}

const AS_TEXT = { getTypeParser: () => (value: string) => value };
