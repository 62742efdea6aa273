// What PostgreSQL counts: transactions, rows, WAL and fsyncs of a request, and how late a debit comes.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { load } from '../load/generate.mjs';
import { PLAIN } from '../load/scenarios.mjs';

/** The counters of a busy backend are up to a second old, so both looks are taken while the load runs. */
const FIRST_LOOK = 0.2;
const LAST_LOOK = 0.95;
const TENTH_MS = 100;
const LAST_POSTING_MS = 3_000;
const PG_18 = 180_000;

export async function withDatabase(database, work) {
  const client = new pg.Client(database);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * What a request takes of PostgreSQL in the middle of a load, everything in the background included.
 * @returns {Promise<Record<string, number>>} by the name of the counter
 */
export async function storeCost(gateway, { connections, seconds }) {
  return withDatabase(gateway.database, async (client) => {
    const { rows } = await client.query('SHOW server_version_num');
    const look = () => counters(client, Number(rows[0].server_version_num));
    const running = load({
      url: `${gateway.url}/chat/completions`,
      headers: gateway.headers,
      body: PLAIN,
      connections,
      seconds,
    });
    await delay(seconds * FIRST_LOOK * 1_000);
    const first = await look();
    await delay(seconds * (LAST_LOOK - FIRST_LOOK) * 1_000);
    const last = await look();
    const { startedAt, timeline } = await running;
    const requests = between(timeline, first.at - startedAt, last.at - startedAt);
    return Object.fromEntries(
      Object.keys(first.counts).map((name) => [name, (last.counts[name] - first.counts[name]) / requests]),
    );
  });
}

/** Answers between two times, in milliseconds of the load; a tenth of a second is taken as even. */
export function between(timeline, fromMs, toMs) {
  return timeline.reduce((sum, count, i) => {
    const overlap = Math.min(toMs, (i + 1) * TENTH_MS) - Math.max(fromMs, i * TENTH_MS);
    return sum + (count * Math.max(0, overlap)) / TENTH_MS;
  }, 0);
}

async function counters(client, version) {
  const wal =
    version >= PG_18
      ? `(SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal')`
      : `(SELECT wal_sync FROM pg_stat_wal)`;
  const { rows } = await client.query(
    `SELECT xact_commit + xact_rollback AS transactions, ${wal} AS "WAL fsyncs",
            (SELECT wal_records FROM pg_stat_wal) AS "WAL records", (SELECT wal_bytes FROM pg_stat_wal) AS "WAL bytes",
            tup_inserted AS inserts, tup_updated AS updates, tup_deleted AS deletes
       FROM pg_stat_database WHERE datname = current_database()`,
  );
  const counts = Object.fromEntries(Object.entries(rows[0]).map(([name, value]) => [name, Number(value)]));
  return { at: Date.now(), counts };
}

/**
 * From the end of a request to the ledger entry that debits it, over those that ended in the last `seconds`.
 * @returns {Promise<{ p50: number, p99: number, requests: number }>}
 */
export async function debitLagMs(gateway, seconds) {
  await delay(LAST_POSTING_MS);
  return withDatabase(gateway.database, async (client) => {
    const { rows } = await client.query(
      `SELECT count(*)::int AS requests, percentile_disc(array[0.5, 0.99])
                WITHIN GROUP (ORDER BY extract(epoch FROM e.created_at - c.ended_at) * 1000) AS q
         FROM billing.charge c
         JOIN billing.coverage v ON v.tenant_id = c.tenant_id AND v.period = c.period
           AND c.seq BETWEEN v.from_seq AND v.to_seq
         JOIN billing.journal_entry e ON e.id = v.entry_id
        WHERE c.ended_at > now() - make_interval(secs => $1)`,
      [seconds + LAST_POSTING_MS / 1_000],
    );
    const [p50, p99] = (rows[0].q ?? []).map(Number);
    return { p50, p99, requests: rows[0].requests };
  });
}

/** On disk, and settings that say what a commit waits for: without them figures of two machines cannot be compared. */
export const databaseFacts = (gateway) =>
  withDatabase(gateway.database, async (client) => {
    const { rows } = await client.query(
      `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
              current_setting('synchronous_commit') AS "synchronousCommit",
              current_setting('shared_buffers') AS buffers`,
    );
    return rows[0];
  });
