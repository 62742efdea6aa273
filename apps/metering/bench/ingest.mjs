// Compares ingestion with a raw COPY of the same rows into the same table, with its index and primary key. Both run
// interleaved, in batches of 1,000 with a commit each. Build first (tools/build/build.mjs libs/contracts libs/runtime
// libs/postgres libs/messaging apps/metering), then: node apps/metering/bench/ingest.mjs [batches]
import 'reflect-metadata';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

const require = createRequire(import.meta.url);
const { newId } = require('@tollgate/contracts');
const { migrate, startEmbeddedPostgres } = require('@tollgate/postgres');
const { UsageConsumer } = require('../dist/consume/usage-consumer.js');
const { MIGRATIONS, openMeteringDatabase } = require('../dist/database.js');
const { Partitions } = require('../dist/record/partitions.js');

const BATCH = 1_000;
const BATCHES = Number(process.argv[2] ?? 40);
const ROUNDS = 5;

function batch(tenants, keys) {
  const startedAt = new Date().toISOString();
  return Array.from({ length: BATCH }, (_, i) => ({
    id: newId('req'),
    tenantId: tenants[i % tenants.length],
    keyId: keys[i % keys.length],
    model: i % 3 ? 'sim-small' : 'sim-large',
    kind: 'chat',
    stream: i % 2 === 0,
    price: {
      version: 'a1b2c3d4',
      inputFemtos: '150000000',
      cachedInputFemtos: '75000000',
      outputFemtos: '600000000',
      requestNanos: '0',
    },
    startedAt,
    endedAt: new Date().toISOString(),
    promptTokens: 100 + i,
    cachedTokens: 0,
    completionTokens: 50,
    costNanos: String((100 + i) * 150 + 50 * 600),
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete',
  }));
}

function pricesInForce() {
  const stamp = batch(['t'], ['k'])[0].price;
  const known = new Map();
  for (let i = 0; i < 200; i++) known.set(`${stamp.version} model-${i}`, stamp);
  for (const model of ['sim-small', 'sim-large']) known.set(`${stamp.version} ${model}`, stamp);
  return { find: ({ model, price }) => known.get(`${price.version} ${model}`), lookAgain: async () => false };
}

async function main() {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const server = await startEmbeddedPostgres({ dataDirectory });
  await migrate({ url: server.url, ...MIGRATIONS });
  const dataSource = await openMeteringDatabase(server.url);
  await new Partitions(dataSource).ensure();
  // The service itself may neither empty its tables nor read files.
  const owner = new pg.Client({ connectionString: server.url });
  await owner.connect();
  await owner.query('SET search_path TO metering');
  const sql = (text) => owner.query(text);
  const copies = mkdtempSync(join(tmpdir(), 'tollgate-copy-'));
  chmodSync(copies, 0o777);
  try {
    // As many as an operator has. Two of them are used.
    const prices = pricesInForce();
    const consumer = new UsageConsumer(dataSource, prices);
    // The brokers are not measured. What is sent to them is made.
    const charges = {
      within: async (_tx, _topic, batch) => batch,
      publish: async (_topic, batch) => void JSON.stringify(batch),
    };
    const tenants = Array.from({ length: 8 }, () => newId('ten'));
    const keys = Array.from({ length: 16 }, () => newId('key'));
    const clear = () => sql('TRUNCATE usage_event, usage_hour, tenant_sum, outbox');
    const ratios = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const batches = Array.from({ length: BATCHES }, () => batch(tenants, keys));
      await clear();
      await sql('CHECKPOINT');
      const cpu = process.cpuUsage();
      let start = performance.now();
      for (const events of batches) await consumer.consume(events, charges);
      const ingestMs = performance.now() - start;
      const used = process.cpuUsage(cpu);
      for (let i = 0; i < BATCHES; i++) {
        await sql(
          `COPY (SELECT * FROM usage_event ORDER BY id OFFSET ${i * BATCH} LIMIT ${BATCH})
           TO '${join(copies, `${i}`)}'`,
        );
      }
      await clear();
      await sql('CHECKPOINT');
      start = performance.now();
      for (let i = 0; i < BATCHES; i++) await sql(`COPY usage_event FROM '${join(copies, `${i}`)}'`);
      const copyMs = performance.now() - start;
      if (round === 0) continue; // warm-up
      const rate = (ms) => Math.round((BATCH * BATCHES * 1000) / ms);
      ratios.push(copyMs / ingestMs);
      console.log(
        `ingest ${rate(ingestMs)}/s (node ${((used.user + used.system) / BATCH / BATCHES).toFixed(1)} µs an ` +
          `event), copy ${rate(copyMs)}/s, ratio ${(copyMs / ingestMs).toFixed(2)}`,
      );
    }
    console.log(`median ratio ${ratios.sort((a, b) => a - b)[ROUNDS >> 1].toFixed(2)}`);
  } finally {
    await dataSource.destroy();
    await owner.end();
    await server.stop();
    rmSync(dataDirectory, { recursive: true });
    rmSync(copies, { recursive: true });
  }
}

await main();
