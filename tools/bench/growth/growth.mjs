// `npm run bench -- --growth 1000000`: whether a request and the queries cost the same with many tenants and a long
// history. Measures the standalone form with 10 tenants and no history, with MANY_TENANTS, and then with a million
// recorded events, posted and charged.
import { load } from '../load/generate.mjs';
import { PLAIN } from '../load/scenarios.mjs';
import { cpuSeconds } from '../machine/usage.mjs';
import { untilQuiet } from '../measure/cost.mjs';
import { withDatabase } from '../measure/database.mjs';
import { figure, table } from '../report/print.mjs';
import { newTenant, usableHeaders } from '../gateways/tollgate.mjs';
import { fill } from './books.mjs';

const FEW_TENANTS = 10;
const MANY_TENANTS = 2_000;
const QUICK_TENANTS = 50;
const AT_ONCE = 16;
const CONNECTIONS = 32;
const QUERIES = 300;
const DAYS = 30;
const DAY_MS = 86_400_000;

/** @returns {Promise<string>} the table, as Markdown */
export async function growth(form, { events, quick, seconds, say }) {
  const rows = [];
  const tenants = await tenantsOf(form, FEW_TENANTS);
  const look = async (name) => {
    say(`${name} …`);
    rows.push([name, ...(await costs(form, tenants, seconds))]);
  };
  // The first run is for the warm-up.
  await costs(form, tenants, seconds);
  await look(`${FEW_TENANTS} tenants, little history`);
  const many = quick ? QUICK_TENANTS : MANY_TENANTS;
  tenants.push(...(await tenantsOf(form, many - FEW_TENANTS)));
  await look(`${many} tenants, keys at random`);
  say(`recording ${events} events …`);
  await fill(form, tenants.slice(0, FEW_TENANTS), events);
  await withDatabase(form.database, (client) => client.query('ANALYZE'));
  await look(`${many} tenants, ${events} events of ${FEW_TENANTS} of them`);
  return [
    table(
      ['', 'requests/s', 'Node µs a request', 'PostgreSQL µs', 'GET /usage p50, p99 ms', 'GET /billing p50, p99 ms'],
      rows.map(([name, run, usage, billing]) => [
        name,
        figure(run.perSecond),
        figure(run.nodeMicros),
        figure(run.postgresMicros),
        `${figure(usage.p50)}, ${figure(usage.p99)}`,
        `${figure(billing.p50)}, ${figure(billing.p99)}`,
      ]),
    ),
    `Bars: a request at most 1.2 × in every row; the queries' p99 at most 1.5 ×.`,
  ].join('\n\n');
}

async function tenantsOf(form, count) {
  const tenants = [];
  let left = count;
  const make = async () => {
    while (left-- > 0) {
      const tenant = await newTenant(form, { name: 'growth', token: true });
      await usableHeaders(form.url, tenant);
      tenants.push(tenant);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
  return tenants;
}

/** What a request costs, and how long the queries of the first tenants take. */
export async function costs(form, tenants, seconds) {
  const { standalone, PostgreSQL } = form.parts;
  const before = [cpuSeconds(standalone), cpuSeconds(PostgreSQL)];
  const run = await load({
    url: `${form.url}/chat/completions`,
    authorizations: tenants.map(({ key }) => `Bearer ${key}`),
    body: PLAIN,
    connections: CONNECTIONS,
    seconds,
  });
  if (run.errors > 0) throw new Error(`${run.errors} errors: ${run.firstError}`);
  await untilQuiet(form.parts, {});
  const micros = (pids, was) => ((cpuSeconds(pids) - was) * 1e6) / run.requests;
  const [nodeMicros, postgresMicros] = [micros(standalone, before[0]), micros(PostgreSQL, before[1])];
  const to = new Date();
  const from = new Date(to.getTime() - DAYS * DAY_MS);
  const range = `from=${from.toISOString()}&to=${to.toISOString()}`;
  const api = form.url.replace(/\/v1$/, '/_api/v1');
  const usage = await latencies(`${api}/usage?${range}&groupBy=day`, tenants);
  const billing = await latencies(`${api}/billing`, tenants);
  return [{ perSecond: run.perSecond, nodeMicros, postgresMicros }, usage, billing];
}

/** The latencies of calls, one after the other, for the tenants that have the history. */
async function latencies(url, tenants) {
  const values = [];
  for (let i = 0; i < QUERIES; i++) {
    const headers = { authorization: `Bearer ${tenants[i % FEW_TENANTS].token}` };
    const began = performance.now();
    const answer = await fetch(url, { headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
    values.push(performance.now() - began);
  }
  values.sort((a, b) => a - b);
  return { p50: values[Math.floor(QUERIES * 0.5)], p99: values[Math.floor(QUERIES * 0.99)] };
}
