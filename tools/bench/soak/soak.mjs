// `npm run bench -- --soak 10m`: full load for a long time. Shows what grows: memory of each part, tables, WAL, Redis.
// At the end the books are reconciled.
import { setTimeout as delay } from 'node:timers/promises';
import { load } from '../load/generate.mjs';
import { SCENARIOS } from '../load/scenarios.mjs';
import { untilQuiet } from '../measure/cost.mjs';
import { pssBytes } from '../machine/usage.mjs';
import { figure, table } from '../report/print.mjs';
import { sizesOf } from './sizes.mjs';

/** Before the first look: caches and heaps have their size by then. */
const WARM_SHARE = 0.2;
const LOOKS = 40;
const MIB = 1024 * 1024;
const SLOPE_SECONDS = 600;
const RECONCILE_LOOKS = 120;
const RECONCILE_LOOK_MS = 1_000;
/** Growth that counts as none: pages that PostgreSQL has set aside. */
const SHOWN_BYTES = MIB;

/** @returns {Promise<string>} the tables of the form, as Markdown */
export async function soak(form, { seconds, say }) {
  const scenario = SCENARIOS.plain32;
  const post = (body, inSeconds) =>
    load({
      url: `${form.url}/chat/completions`,
      headers: form.headers,
      body,
      connections: scenario.connections,
      seconds: inSeconds,
    });
  say(`${form.name}: warming up for ${figure(seconds * WARM_SHARE)} s …`);
  await post(scenario.body, seconds * WARM_SHARE);
  await untilQuiet(form.parts, {});
  const before = { sizes: await sizesOf(form), live: (await form.memory()).live };

  say(`${form.name}: ${scenario.title} for ${figure(seconds)} s …`);
  const running = post(scenario.body, seconds);
  let ended = false;
  void running.finally(() => (ended = true));
  const began = performance.now();
  const looks = [];
  while (!ended) {
    await delay((seconds * 1_000) / LOOKS);
    if (!ended) looks.push({ seconds: (performance.now() - began) / 1_000, ...(await look(form)) });
  }
  const run = await running;
  await untilQuiet(form.parts, {});
  const after = { sizes: await sizesOf(form), live: (await form.memory()).live };
  const books = await reconcile(form);
  return [
    `## ${form.name}: ${figure(run.perSecond)} requests/s for ${figure(run.elapsed)} s, p99 ` +
      `${figure(run.latencyMs.p99)} ms, ${run.errors} errors`,
    memoryTable(form, looks),
    `- alive in ${form.measured} after a garbage collection: ${mib(before.live)} MiB before, ` +
      `${mib(after.live)} MiB after`,
    `- event loop of ${form.measured}, p99: ${loopText(looks)}`,
    `- books: ${books}`,
    sizesTable(before.sizes, after.sizes, run.requests),
  ].join('\n\n');
}

async function look(form) {
  const memory = Object.fromEntries(Object.entries(form.parts).map(([part, pids]) => [part, pssBytes(pids)]));
  const metrics = await (await fetch(`${form.operatorUrl}/metrics`)).text();
  const loopP99Ms = Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics)?.[1]) * 1_000;
  return { memory, loopP99Ms };
}

function memoryTable({ parts }, looks) {
  const rows = Object.keys(parts).map((part) => {
    const values = looks.map(({ seconds, memory }) => [seconds, memory[part]]);
    return [part, mib(values[0][1]), mib(values.at(-1)[1]), figure((slope(values) * SLOPE_SECONDS) / MIB)];
  });
  return table(['part', 'MiB in memory, first', 'last', 'slope, MiB in 10 min'], rows);
}

/** By least squares: y per x. */
function slope(points) {
  const mean = (at) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return over / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}

function loopText(looks) {
  const values = looks.map(({ loopP99Ms }) => loopP99Ms).sort((a, b) => a - b);
  return `median ${figure(values[Math.floor(values.length / 2)])} ms, largest ${figure(values.at(-1))} ms`;
}

/** What has grown, and everything that should be empty. */
function sizesTable(before, after, requests) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const none = { bytes: 0, rows: 0, dead: 0 };
  const rows = names.flatMap((name) => {
    const [was, is] = [before[name] ?? none, after[name] ?? none];
    if (Math.abs(is.bytes - was.bytes) < SHOWN_BYTES && is.rows - was.rows < 1_000) return [];
    return [
      [
        name,
        mib(was.bytes),
        mib(is.bytes),
        figure((is.bytes - was.bytes) / requests),
        String(is.rows),
        String(is.dead),
      ],
    ];
  });
  return table(['table or store', 'MiB before', 'MiB after', 'bytes a request', 'rows', 'dead rows'], rows);
}

async function reconcile({ operatorUrl, operatorSecret }) {
  const ask = async (path, method) => {
    const answer = await fetch(`${operatorUrl}/_operator/v1/reconcile${path}`, {
      method,
      headers: { authorization: `Bearer ${operatorSecret}` },
    });
    return { status: answer.status, ...(await answer.json()) };
  };
  let run = await ask('', 'POST');
  const id = run.data?.id;
  for (let looks = 0; run.data?.state === 'running' && looks < RECONCILE_LOOKS; looks++) {
    await delay(RECONCILE_LOOK_MS);
    run = await ask(`/${id}`, 'GET');
  }
  const report = run.data?.report ?? run.data;
  if (report?.ok === undefined) return `not reconciled: ${JSON.stringify(run)}`;
  const { ok, events, pendingHolds, settledHolds, differenceCount } = report;
  const found = ok ? 'no difference' : `${differenceCount} DIFFERENCES`;
  return `${found} in ${events} events; holds left: ${pendingHolds} pending, ${settledHolds} settled`;
}

const mib = (bytes) => figure(bytes / MIB);
