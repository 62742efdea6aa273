// What reconcile takes over many events: fills all stores with sound books by generate_series, runs it once, and says how long it took and the peak memory of this process, which
// is metering's and billing's together. Then it spoils one charge and runs it again.
// Build first (npm run build), then: node apps/billing/bench/reconcile.mjs [millions of events, 10] [tenants, 1000]
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Module } from '@nestjs/common';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const require = createRequire(import.meta.url);
const { AdmissionStore, PostgresAdmissionStore, MIGRATIONS: ADMISSION } = require('@tollgate/admission');
const { idBound } = require('@tollgate/contracts');
const { Messages, PostgresMessages } = require('@tollgate/messaging');
const { migrate, startEmbeddedPostgres } = require('@tollgate/postgres');
const { BillingModule, MIGRATIONS: BILLING } = require('../dist/index.js');
const { MeteringModule, MIGRATIONS: METERING } = require('../../metering/dist/index.js');

const EVENTS = Number(process.argv[2] ?? 10) * 1_000_000;
const TENANTS = Number(process.argv[3] ?? 1_000);
const SLICES = 20;
const CHARGES_PER_ENTRY = 100;
const NO_SWEEP_MS = 3_600_000;
// All ids of one month, ascending with the events: the instant, then the event's number in hex.
const MONTH_MS = Date.UTC(2026, 10, 1);
const PREFIX = idBound('req', MONTH_MS + 1_000).slice(0, 14);
const HEX_CHARS = 30 - PREFIX.length;

const id = (n) => `'${PREFIX}' || lpad(to_hex(${n}), ${HEX_CHARS}, '0')`;
const tenant = (n) => `'ten_' || lpad(to_hex(${n}), 26, '0')`;
const ENDED = `to_timestamp(${MONTH_MS / 1000}) + i * interval '1 millisecond' * ${Math.floor((28 * 86_400_000) / EVENTS)}`;
const COST = `((i + i / ${TENANTS}) * 7919 % 1000 + 1) * 1000`;

/** i: the event's number, from 0; tenant i % TENANTS. */
const fills = (from, to) => [
  `INSERT INTO metering.usage_event SELECT ended, ended, ended, cost, 0, NULL, 0, 0, 1000000, 0, 10, 0, 20, 'chat', 'complete', false, false,
     ${id('i')}, ${tenant(`i % ${TENANTS}`)}, 'key_' || (i % 2), 'sim-small', 'v'
   FROM (SELECT i, ${ENDED} AS ended, ${COST} AS cost FROM generate_series(${from}::bigint, ${to - 1}) i) e`,
  `INSERT INTO billing.charge SELECT ${id('i')}, ${tenant(`i % ${TENANTS}`)}, 'key_' || (i % 2), cost, ended, '2026-11', i / ${TENANTS} + 1, ended
   FROM (SELECT i, ${ENDED} AS ended, ${COST} AS cost FROM generate_series(${from}::bigint, ${to - 1}) i) e`,
];

const SUMS = [
  `INSERT INTO metering.usage_hour SELECT tenant_id, date_trunc('hour', ended_at, 'UTC'), model, key_id, count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), 0, sum(cost_nanos)
   FROM metering.usage_event GROUP BY 1, 2, 3, 4`,
  `INSERT INTO metering.tenant_sum SELECT tenant_id, sum(requests), sum(cost_nanos) FROM metering.usage_hour GROUP BY 1`,
  `INSERT INTO billing.tenant_books (tenant_id, version, balance_cents, last_sequence) SELECT tenant_id, 1, 1000000, 1 FROM metering.tenant_sum`,
  `CREATE TABLE public.cover AS SELECT tenant_id, number, min(seq) AS from_seq, max(seq) AS to_seq, sum(nanos) AS nanos, sum(sum(nanos)) OVER (PARTITION BY tenant_id ORDER BY number) AS total
   FROM (SELECT tenant_id, seq, cost_nanos AS nanos, (seq - 1) / ${CHARGES_PER_ENTRY} + 1 AS number FROM billing.charge) c GROUP BY 1, 2`,
  `CREATE TABLE public.entry AS SELECT *, div(total, 10000000) - div(total - nanos, 10000000) AS cents FROM public.cover`,
  `INSERT INTO billing.journal_entry (id, tenant_id, sequence, type, amount_cents, source, ref, input_hash, period, balance_after_cents, created_at)
   SELECT 'ent_' || tenant_id || '_0', tenant_id, 1, 'topup', 1000000, 'manual', 'first', decode(repeat('00', 32), 'hex'), '2026-11', 1000000, now() FROM billing.tenant_books
   UNION ALL SELECT 'ent_' || tenant_id || '_' || number, tenant_id, number + 1, 'usage', -cents, 'metering', 'r' || number, decode(repeat('00', 32), 'hex'), '2026-11',
     1000000 - div(total, 10000000), now() FROM public.entry`,
  `INSERT INTO billing.posting SELECT id, 'credit', amount_cents FROM billing.journal_entry
   UNION ALL SELECT id, CASE type WHEN 'usage' THEN 'usage_revenue' ELSE 'payments_clearing' END, -amount_cents FROM billing.journal_entry`,
  `INSERT INTO billing.coverage SELECT tenant_id, number, '2026-11', from_seq, to_seq, nanos, (total - nanos) % 10000000, cents, total % 10000000, 'ent_' || tenant_id || '_' || number FROM public.entry`,
  `INSERT INTO billing.tenant_month SELECT tenant_id, '2026-11', max(to_seq), max(to_seq), 0, sum(cents) FROM public.entry GROUP BY 1`,
  `UPDATE billing.tenant_books b SET balance_cents = 1000000 - c.cents, last_sequence = c.covers + 1, last_cover = c.covers, carried_nanos = c.total % 10000000
   FROM (SELECT tenant_id, sum(cents) AS cents, count(*) AS covers, max(total) AS total FROM public.entry GROUP BY 1) c WHERE c.tenant_id = b.tenant_id`,
  `INSERT INTO admission.tenant (tenant_id, version, balance_nanos) SELECT tenant_id, version, balance_cents * 10000000 - carried_nanos FROM billing.tenant_books`,
  'VACUUM (ANALYZE)',
];

async function fill(client) {
  await client.query('SET session_replication_role = replica');
  await client.query('SET synchronous_commit = off');
  await client.query(
    `CREATE TABLE metering.usage_event_2026_11 PARTITION OF metering.usage_event FOR VALUES FROM ('${idBound('req', MONTH_MS)}') TO ('${idBound('req', Date.UTC(2026, 11, 1))}')`,
  );
  for (let slice = 0; slice < SLICES; slice++) {
    const [from, to] = [slice, slice + 1].map((n) => Math.floor((EVENTS * n) / SLICES));
    for (const sql of fills(from, to)) await client.query(sql);
  }
  for (const sql of SUMS) await client.query(sql);
}

/** CPU seconds of the server's processes so far, those that have ended included. Linux counts in hundredths. */
function serverSeconds(postmaster) {
  const stat = (pid) =>
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = stat(pid);
      if (pid === postmaster)
        ticks += Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14]);
      else if (fields[1] === postmaster) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It has ended between the two readings.
    }
  }
  return ticks / 100;
}

async function reconcile(messages, postmaster) {
  const started = performance.now();
  const cpu = { server: serverSeconds(postmaster), node: process.cpuUsage() };
  const { id: runId } = await messages.request('billing.reconcile.start', {});
  for (;;) {
    await delay(100);
    const run = await messages.request('billing.reconcile.get', { id: runId });
    if (run.state === 'running') continue;
    const seconds = (performance.now() - started) / 1000;
    if (run.state === 'failed') throw new Error(run.reason);
    const { ok, events, tenants, differenceCount, differences } = run.report;
    const node = process.cpuUsage(cpu.node);
    const cpuText = `CPU ${(serverSeconds(postmaster) - cpu.server).toFixed(1)} s in Postgres, ${((node.user + node.system) / 1e6).toFixed(1)} s in Node`;
    console.log(
      `${events} events of ${tenants} tenants: ok ${ok}, ${differenceCount} differences, ${seconds.toFixed(1)} s, ${cpuText}, peak RSS ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB`,
    );
    for (const difference of differences.slice(0, 5)) console.log(`  ${JSON.stringify(difference)}`);
    return;
  }
}

async function main() {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const server = await startEmbeddedPostgres({ dataDirectory });
  const client = new pg.Client({ connectionString: server.url });
  try {
    for (const { schema, directory } of [METERING, BILLING, ADMISSION])
      await migrate({ url: server.url, schema, directory });
    await client.connect();
    const started = performance.now();
    await fill(client);
    console.log(`filled in ${Math.round((performance.now() - started) / 1000)} s`);

    const messages = new PostgresMessages({ url: server.url, applicationName: 'bench' });
    const admission = new PostgresAdmissionStore({ url: server.url });
    await admission.start();
    const providers = [
      { provide: Messages, useValue: messages },
      { provide: AdmissionStore, useValue: admission },
    ];
    class Seams {}
    Module({})(Seams);
    class Root {}
    Module({})(Root);
    const databaseUrl = server.url;
    const app = await NestFactory.createApplicationContext(
      {
        module: Root,
        imports: [
          { module: Seams, global: true, providers, exports: providers },
          MeteringModule.register({ databaseUrl, sweepIntervalMs: NO_SWEEP_MS }),
          BillingModule.register({ databaseUrl }),
        ],
      },
      { logger: false },
    );
    await messages.start();
    const postmaster = readFileSync(join(dataDirectory, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0];
    console.log(`before: RSS ${Math.round(process.memoryUsage().rss / 1024 / 1024)} MiB`);
    await reconcile(messages, postmaster);
    await client.query(`DELETE FROM billing.charge WHERE id = ${id(Math.floor(EVENTS / 3))}`);
    await reconcile(messages, postmaster);
    await messages.stopConsuming();
    await app.close();
    await messages.close();
    await admission.close();
  } finally {
    await client.end();
    await server.stop();
    rmSync(dataDirectory, { recursive: true, force: true });
  }
}

await main();
