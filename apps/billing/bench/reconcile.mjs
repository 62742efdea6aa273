// Measures reconcile over many events. It fills all stores with sound books (sound-books.mjs), runs reconcile once, and
// prints the time and the peak memory of this process, which holds metering and billing together. Then it spoils every
// store a little and runs reconcile again, which must find and name each difference. Exit code 1 if a difference is
// missed, or if one is reported in sound books. Build first (npm run build), then: node
// apps/billing/bench/reconcile.mjs [millions of events, 10] [tenants, 1000]
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { fillBooks, requestId, tenantId } from './sound-books.mjs';

const require = createRequire(import.meta.url);
const { AdmissionStore, PostgresAdmissionStore, MIGRATIONS: ADMISSION } = require('@tollgate/admission');
const { PostgresMessages } = require('@tollgate/messaging');
const { MessagesModule, MessagesServer } = require('@tollgate/messaging/nest');
const { migrate, startEmbeddedPostgres } = require('@tollgate/postgres');
const { globalModule, provide } = require('@tollgate/runtime');
const { BillingModule, MIGRATIONS: BILLING } = require('../dist/index.js');
const { MeteringModule, MIGRATIONS: METERING } = require('../../metering/dist/index.js');

const TENANTS = Number(process.argv[3] ?? 1_000);
/** Per month and tenant. */
const EACH = Math.round((Number(process.argv[2] ?? 10) * 1_000_000) / 2 / TENANTS);
const NO_SWEEP_MS = 3_600_000;

/** The number, within its month, of an event of tenant `n` near the middle. */
const middle = (n) => Math.floor(EACH / 2) * TENANTS + n;
const [lost, doubled, changed, unknown] = [0, 1, 0, 1].map((month, n) => requestId(month, middle(n)));

/** Each: what is changed, and the ids (or the tenant, where a sum is wrong) that reconcile must name. */
const SPOILED = [
  ['a lost charge', `DELETE FROM billing.charge WHERE id = '${lost}'`, [lost]],
  [
    'a charge without an event',
    `INSERT INTO billing.charge
     SELECT id || 'x', tenant_id, key_id, cost_nanos, ended_at, period, 999999999
     FROM billing.charge
     WHERE id = '${doubled}'`,
    [`${doubled}x`],
  ],
  ['a changed charge', `UPDATE billing.charge SET cost_nanos = cost_nanos + 1 WHERE id = '${changed}'`, [changed]],
  ['a deleted event', `DELETE FROM metering.usage_event WHERE id = '${unknown}'`, [unknown]],
  [
    'a changed debit',
    `UPDATE billing.journal_entry SET amount_cents = amount_cents - 1 WHERE id = 'ent_${tenantId(4)}_2'`,
    [`ent_${tenantId(4)}_2`],
  ],
  ['a deleted invoice', `DELETE FROM billing.invoice WHERE accounting_number = 6`, ['6']],
  [
    'a balance in the admission store',
    `UPDATE admission.tenant SET balance_nanos = balance_nanos + 1 WHERE tenant_id = '${tenantId(6)}'`,
    [tenantId(6)],
  ],
  [
    'a hold that no sum includes',
    `INSERT INTO admission.hold
     SELECT 'req_stray', tenant_id, key_id, state, hold_nanos, cost_nanos, output_tokens, hold_tokens,
       key_tokens_per_minute, tenant_tokens_per_minute, key_budget_nanos,
       tenant_budget_nanos, deadline_ms, delivered, progressed_ms, unconfirmed_since_ms, record
     FROM admission.hold
     WHERE tenant_id = '${tenantId(7)}'
     LIMIT 1`,
    ['req_stray', tenantId(7)],
  ],
];

/** CPU seconds of the server's processes so far, including those that have ended. Linux counts in hundredths. */
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
      // The process ended between the two readings.
    }
  }
  return ticks / 100;
}

/** Runs reconcile to its end, prints its cost, and returns the report. */
async function reconcile(messages, postmaster) {
  const started = performance.now();
  const cpu = { server: serverSeconds(postmaster), node: process.cpuUsage() };
  const { id } = await messages.request('billing.reconcile.start', {});
  for (;;) {
    await delay(100);
    const run = await messages.request('billing.reconcile.get', { id });
    if (run.state === 'running') continue;
    const seconds = (performance.now() - started) / 1000;
    if (run.state === 'failed') throw new Error(run.reason);
    const { ok, events, tenants, settledHolds, differenceCount } = run.report;
    const node = process.cpuUsage(cpu.node);
    const cpuText =
      `CPU ${(serverSeconds(postmaster) - cpu.server).toFixed(1)} s in Postgres, ` +
      `${((node.user + node.system) / 1e6).toFixed(1)} s in Node`;
    const memory =
      `peak RSS ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB, heap ` +
      `${Math.round(process.memoryUsage().heapUsed / 1024 / 1024)} MiB`;
    console.log(
      `${events} events of ${tenants} tenants, ${settledHolds} holds: ok ${ok}, ${differenceCount} differences, ` +
        `${seconds.toFixed(1)} s, ${cpuText}, ${memory}, load ${loadavg()[0].toFixed(1)}`,
    );
    return run.report;
  }
}

/** False if it found a difference in sound books, or missed one in spoiled books. */
async function prove(client, messages, postmaster) {
  const sound = await reconcile(messages, postmaster);
  for (const difference of sound.differences.slice(0, 5)) console.log(`  ${JSON.stringify(difference)}`);
  for (const [, sql] of SPOILED) {
    const { rowCount } = await client.query(sql);
    if (rowCount !== 1) throw new Error(`${rowCount} rows: ${sql}`);
  }
  const spoiled = await reconcile(messages, postmaster);
  const named = new Set(spoiled.differences.flatMap(({ tenantId: of, ids }) => [of, ...ids]));
  const found = SPOILED.map(([what, , ids]) => {
    const all = ids.every((id) => named.has(id));
    console.log(`  ${all ? 'found' : 'NOT FOUND'}: ${what} (${ids.join(', ')})`);
    return all;
  });
  return sound.ok && !found.includes(false);
}

async function main() {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const server = await startEmbeddedPostgres({ dataDirectory });
  const client = new pg.Client({ connectionString: server.url });
  try {
    for (const migrations of [METERING, BILLING, ADMISSION]) await migrate({ url: server.url, ...migrations });
    await client.connect();
    const started = performance.now();
    await fillBooks(client, { perMonth: EACH * TENANTS, tenants: TENANTS });
    console.log(`filled in ${Math.round((performance.now() - started) / 1000)} s`);

    const messages = new PostgresMessages({ url: server.url, applicationName: 'bench' });
    const admission = new PostgresAdmissionStore({ url: server.url });
    await admission.start();
    messages.handle('auth.tenants.get', async ({ tenantId: id }) => ({ id, status: 'active' }));
    const databaseUrl = server.url;
    const app = await NestFactory.createMicroservice(
      {
        module: class Root {},
        imports: [
          MessagesModule.of(messages),
          globalModule([provide(AdmissionStore, admission)]),
          MeteringModule.register({ databaseUrl, sweepIntervalMs: NO_SWEEP_MS }),
          BillingModule.register({ databaseUrl, watchEveryMs: null, currency: () => 'USD' }),
        ],
      },
      { strategy: new MessagesServer(messages), logger: false },
    );
    await app.listen();
    const postmaster = readFileSync(join(dataDirectory, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0];
    console.log(`before: RSS ${Math.round(process.memoryUsage().rss / 1024 / 1024)} MiB`);
    if (!(await prove(client, messages, postmaster))) process.exitCode = 1;
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
