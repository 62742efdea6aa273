// `npm run bench`: compares Tollgate with a bare Node + undici proxy and with nginx, in front of the same simulator and
// interleaved in one run. The measured gateway has core 0. The load, the simulator and PostgreSQL have core 1. Prints
// ratios and writes bench-results/<time>.json. Options: --rounds 3 --seconds 4
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ROOT } from '../setup/prepare.mjs';
import {
  cpuSeconds,
  load,
  pssBytes,
  rssBytes,
  startBareProxy,
  startNginx,
  startSimulator,
  startTollgate,
} from './processes.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '4' } },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const GATEWAY = 0;
const REST = 1;
const OPEN_STREAMS = 200;
const say = (line) => process.stderr.write(`${line}\n`);

const message = 'The quick brown fox jumps over the lazy dog. '.repeat(10);
const model = 'sim';
const PLAIN = {
  model,
  messages: [{ role: 'user', content: message }],
  max_tokens: 100,
  simulator: { answerTokens: 100 },
};
const SCENARIOS = {
  plain: { connections: 32, body: PLAIN },
  oneConnection: { connections: 1, body: PLAIN },
  streamed: { connections: 32, body: { ...PLAIN, max_tokens: 500, stream: true, simulator: { answerTokens: 500 } } },
  pacedStreams: {
    connections: 16,
    body: { ...PLAIN, stream: true, simulator: { answerTokens: 40, tokensPerSecond: 50 } },
  },
};

const simulator = await startSimulator(REST);
const gateways = {
  direct: { ready: simulator.ready, pids: [] },
  bare: await startBareProxy(GATEWAY, simulator.ready.url),
};
const nginx = await startNginx(GATEWAY, simulator.ready.url);
if (nginx) gateways.nginx = nginx;
else say('nginx is not installed, so it is not measured.');
const tollgate = await startTollgate(GATEWAY, REST, simulator.ready.url);
gateways.tollgate = tollgate;

const runs = {};
async function measure(name, scenario, options = {}) {
  const { ready, pids, headers } = gateways[name];
  const serverPids = name === 'tollgate' ? tollgate.serverPids() : [];
  const before = [cpuSeconds(pids), cpuSeconds(serverPids)];
  const { connections, body } = SCENARIOS[scenario];
  const result = await load(REST, {
    url: `${ready.url}/chat/completions`,
    headers,
    body,
    connections,
    seconds,
    ...options,
  });
  if (result.errors > 0) say(`  ${name} ${scenario}: ${result.errors} errors`);
  const units = scenario === 'streamed' ? result.chunks : result.requests;
  result.cpuMicros = pids.length ? ((cpuSeconds(pids) - before[0]) * 1e6) / units : null;
  result.serverCpuMicros = serverPids.length ? ((cpuSeconds(serverPids) - before[1]) * 1e6) / units : null;
  return result;
}

for (const name of Object.keys(gateways)) await measure(name, 'plain', { seconds: 2 }); // warm-up
const rssIdle = rssBytes(tollgate.pids);
for (let round = 1; round <= rounds; round++) {
  for (const scenario of Object.keys(SCENARIOS)) {
    for (const name of Object.keys(gateways)) {
      if (name === 'direct' && scenario === 'streamed') continue;
      say(`round ${round}/${rounds}: ${scenario} ${name}`);
      ((runs[scenario] ??= {})[name] ??= []).push(await measure(name, scenario));
    }
  }
}

const median = (scenario, name, read) => {
  const found = (runs[scenario]?.[name] ?? [])
    .map(read)
    .filter((value) => value != null)
    .sort((a, b) => a - b);
  return found.length ? found[Math.floor(found.length / 2)] : null;
};

// At half of the maximum load: the added latency, and the time until a debit.
const half = Math.floor(median('plain', 'tollgate', (run) => run.perSecond) / 2);
say(`half load: ${half} requests/s`);
const halfLoad = {
  direct: await measure('direct', 'plain', { ratePerSecond: half, seconds: seconds * 2 }),
  tollgate: await measure('tollgate', 'plain', { ratePerSecond: half, seconds: seconds * 2 }),
};
const debitLagMs = await debitLag(seconds * 2);
const perStreamBytes = await memoryPerStream();
const rssAfter = rssBytes(tollgate.pids);
const serverRss = pssBytes(tollgate.serverPids());

const ratio = (a, b, digits = 2) => (a == null || b == null ? null : Number((a / b).toFixed(digits)));
const of = (scenario, name) => ({
  perSecond: round1(median(scenario, name, (run) => (scenario === 'streamed' ? run.chunksPerSecond : run.perSecond))),
  cpuMicros: round1(median(scenario, name, (run) => run.cpuMicros)),
  serverCpuMicros: round1(median(scenario, name, (run) => run.serverCpuMicros)),
  p50Ms: median(scenario, name, (run) => run.latencyMs?.p50),
  p99Ms: median(scenario, name, (run) => run.latencyMs?.p99),
  firstTokenP50Ms: median(scenario, name, (run) => run.firstTokenMs?.p50),
});
const table = Object.fromEntries(
  Object.keys(SCENARIOS).map((scenario) => [
    scenario,
    Object.fromEntries(Object.keys(gateways).map((name) => [name, of(scenario, name)])),
  ]),
);
const report = {
  at: new Date().toISOString(),
  machine: { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model, rounds, seconds },
  table,
  ratios: {
    'CPU per request / bare Node proxy': ratio(table.plain.tollgate.cpuMicros, table.plain.bare.cpuMicros),
    'CPU per request / nginx': ratio(table.plain.tollgate.cpuMicros, table.plain.nginx?.cpuMicros),
    'requests/s / bare Node proxy': ratio(table.plain.tollgate.perSecond, table.plain.bare.perSecond),
    'CPU per chunk / bare Node proxy': ratio(table.streamed.tollgate.cpuMicros, table.streamed.bare.cpuMicros),
    'p50 added over a direct call, one connection, ms': ratio(
      table.oneConnection.tollgate.p50Ms - table.oneConnection.direct.p50Ms,
      1,
    ),
    'p99 added over a direct call, half load, ms': ratio(
      halfLoad.tollgate.latencyMs.p99 - halfLoad.direct.latencyMs.p99,
      1,
    ),
    'time to first token added over nginx, 16 streams, p50 ms': nginx
      ? ratio(table.pacedStreams.tollgate.firstTokenP50Ms - table.pacedStreams.nginx.firstTokenP50Ms, 1)
      : null,
    'time to first token added over a direct call, 16 streams, p50 ms': ratio(
      table.pacedStreams.tollgate.firstTokenP50Ms - table.pacedStreams.direct.firstTokenP50Ms,
      1,
    ),
  },
  halfLoad: {
    ratePerSecond: half,
    latencyMs: halfLoad.tollgate.latencyMs,
    directLatencyMs: halfLoad.direct.latencyMs,
    debitLagMs,
  },
  memory: {
    rssIdleMiB: mib(rssIdle),
    rssAfterMiB: mib(rssAfter),
    serverMiB: mib(serverRss),
    perOpenStreamKiB: round1(perStreamBytes / 1024),
  },
  firstStartMs: tollgate.firstStartMs,
};

for (const [scenario, row] of Object.entries(table)) {
  console.log(`\n${scenario}${scenario === 'streamed' ? ' (per chunk)' : ''}`);
  console.table(row);
}
console.log('');
console.table(Object.fromEntries(Object.entries(report.ratios).map(([name, value]) => [name, { value }])));
console.log(
  'answer → debit at half load, ms',
  debitLagMs,
  '\nmemory',
  report.memory,
  '\nfirst start, ms',
  report.firstStartMs,
);
mkdirSync(join(ROOT, 'bench-results'), { recursive: true });
const file = join(ROOT, 'bench-results', `${report.at.replace(/[:.]/g, '-')}.json`);
writeFileSync(file, JSON.stringify(report, null, 2));
console.log(`\n${file}`);
await Promise.all(Object.values(gateways).map((gateway) => gateway.stop?.()));
await simulator.stop();

/** The time from the end of a request to its ledger entry, over the requests of the last `window` seconds. */
async function debitLag(window) {
  await new Promise((resolve) => setTimeout(resolve, 2_000)); // the last posting is due by then
  const password = readFileSync(join(tollgate.dataDirectory, 'postgres.password'), 'utf8').trim();
  const host = readFileSync(join(tollgate.dataDirectory, 'postgres/postmaster.pid'), 'utf8').split('\n')[4];
  const client = new pg.Client({ host, port: 5432, user: 'postgres', password, database: 'tollgate' });
  await client.connect();
  const { rows } = await client.query(
    `SELECT percentile_disc(array[0.5, 0.99])
              WITHIN GROUP (ORDER BY extract(epoch FROM e.created_at - c.ended_at) * 1000) AS q
       FROM billing.charge c
       JOIN billing.coverage v ON v.tenant_id = c.tenant_id AND v.period = c.period
         AND c.seq BETWEEN v.from_seq AND v.to_seq
       JOIN billing.journal_entry e ON e.id = v.entry_id
      WHERE c.ended_at > now() - make_interval(secs => $1)`,
    [window + 2],
  );
  await client.end();
  const [p50, p99] = rows[0].q ?? [];
  return { p50: round1(Number(p50)), p99: round1(Number(p99)) };
}

async function memoryPerStream() {
  const before = rssBytes(tollgate.pids);
  const body = { ...PLAIN, stream: true, simulator: { answerTokens: 200, tokensPerSecond: 20 } };
  const running = load(REST, {
    url: `${tollgate.ready.url}/chat/completions`,
    headers: tollgate.headers,
    body,
    connections: OPEN_STREAMS,
    seconds: 6,
  });
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  const open = rssBytes(tollgate.pids);
  await running;
  return Math.max(0, open - before) / OPEN_STREAMS;
}

function round1(value) {
  return value == null || Number.isNaN(value) ? null : Number(value.toFixed(1));
}
function mib(bytes) {
  return Math.round(bytes / 2 ** 20);
}
