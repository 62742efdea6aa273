// `npm run bench`: measures both forms of Tollgate with everything switched on, beside a bare Node proxy, in front of
// the same backend, interleaved in one run. Prints tables and the bars, and writes bench-results/<time>.json. The
// measured process has a core of its own. docs/performance.md explains the figures, options.mjs the options.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, cpus, loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { removeOwnContainers } from './gateways/containers.mjs';
import { growth } from './growth/growth.mjs';
import { longHistory, SMALL_EVENTS } from './growth/long-history.mjs';
import { startDistributed } from './gateways/distributed.mjs';
import { startStandalone } from './gateways/standalone.mjs';
import { direct, peer, startBareProxy, startNginx } from './gateways/yardsticks.mjs';
import { startBackend } from './load/generate.mjs';
import { syncMs } from './machine/disk.mjs';
import { canPin, pin, REST } from './machine/processes.mjs';
import { atEnd, takeDown } from './machine/take-down.mjs';
import { measureForm } from './measure/form.mjs';
import { ingestRatio } from './measure/ingest.mjs';
import { measureReplicas, REPLICAS } from './measure/replicas.mjs';
import { CALM } from './measure/rounds.mjs';
import { readOptions, USAGE } from './options.mjs';
import { profile } from './profile/profile.mjs';
import { tablesOf } from './report/print.mjs';
import { soak } from './soak/soak.mjs';

const FORMS = { standalone: startStandalone, distributed: startDistributed };
const RESULTS = join(ROOT, 'bench-results');
const say = (line) => process.stderr.write(`${line}\n`);

async function main() {
  const options = readOptions(process.argv.slice(2));
  if (options.help) return void process.stdout.write(`${USAGE}\n`);
  pin(REST, [process.pid]);
  if (!canPin) say('Nothing is pinned: that needs two cores and taskset. Shares of a core cannot be compared.');
  mkdirSync(RESULTS, { recursive: true });
  if (options.profile) return process.stdout.write(`${await profile(options, RESULTS, say)}\n`);

  const backend = await startBackend({ port: options.backendPort });
  if (options.growthEvents !== undefined) {
    const form = await startStandalone(backend);
    const text = await growth(form, { ...options, events: options.growthEvents, say });
    await form.stop();
    await takeDown();
    return void process.stdout.write(`${text}\n`);
  }
  if (options.booksEvents !== undefined) return measureBooks(backend, options);
  if (options.soakSeconds !== undefined) return soakForms(backend, options);
  if (options.replicas) return countReplicas(backend, options);
  const yardsticks = [direct(backend), await startBareProxy(backend), await startNginx(backend)].filter(Boolean);
  yardsticks.push(...options.peers.map(peer));
  const at = new Date().toISOString();
  const facts = machine(options);
  const summaries = [];
  for (const name of options.form === 'both' ? ['standalone', 'distributed'] : [options.form]) {
    const form = await started(name, backend, options);
    if (form === null) continue;
    summaries.push(await measureForm({ ...options, form, yardsticks, backend, say }));
    await form.stop();
  }
  await takeDown();
  say('metering beside a raw COPY …');
  const ratio = await ingestRatio(options);
  for (const summary of summaries) summary.ingestRatio = ratio;

  process.stdout.write(`${summaries.map(tablesOf).join('\n\n')}\n\n`);
  const foreign = Math.max(...summaries.map((summary) => summary.foreign));
  const believe = foreign > CALM ? ' It was not calm: compare no latency of this run.' : '';
  process.stdout.write(`Node ${facts.node}, ${facts.cores} × ${facts.cpu}, fdatasync ${facts.syncMs.toFixed(2)} ms.\n`);
  process.stdout.write(`Other programs used up to ${Math.round(foreign * 100)} % of the machine.${believe}\n`);
  keep({ at, machine: facts, forms: summaries });
}

/** Writes a result, and prints its file. */
function keep(result) {
  const file = join(RESULTS, `${result.at.replace(/[:.]/g, '-')}.json`);
  writeFileSync(file, JSON.stringify(result, null, 1));
  process.stdout.write(`${file}\n`);
}

async function measureBooks(backend, options) {
  const kept = options.data === undefined ? mkdtempSync(join(tmpdir(), 'tollgate-books-')) : resolve(options.data);
  if (options.data === undefined) atEnd(async () => rmSync(kept, { recursive: true, force: true }));
  const books = [];
  for (const events of [options.booksEvents, SMALL_EVENTS]) {
    const directory = join(kept, String(events));
    books.push({ directory, events, form: await startStandalone(backend, { directory }) });
  }
  const text = await longHistory(...books, { ...options, say });
  for (const { form } of books) await form.stop();
  await takeDown();
  process.stdout.write(`${text}\n`);
}

async function countReplicas(backend, options) {
  const at = new Date().toISOString();
  const facts = machine(options);
  say('starting the distributed form …');
  const form = await startDistributed(backend, { gateways: Math.max(...REPLICAS) });
  const measured = await measureReplicas(form, backend, { ...options, say });
  await form.stop();
  await takeDown();
  keep({ at, machine: facts, ...measured });
}

async function soakForms(backend, options) {
  for (const name of options.form === 'both' ? ['standalone', 'distributed'] : [options.form]) {
    const form = await started(name, backend, options);
    if (form === null) continue;
    process.stdout.write(`${await soak(form, { seconds: options.soakSeconds, say })}\n\n`);
    await form.stop();
  }
  await takeDown();
}

/** Null, with a line that says why, for the distributed form where nobody has asked for it and there is no engine. */
async function started(name, backend, { isFormGiven }) {
  say(`starting the ${name} form …`);
  try {
    return await FORMS[name](backend);
  } catch (error) {
    if (name === 'standalone' || isFormGiven || !(error instanceof SetupError)) throw error;
    say(`The distributed form is left out. ${error.message}`);
    return null;
  }
}

const machine = ({ rounds, seconds, quick }) => ({
  node: process.version,
  cores: cpus().length,
  cpu: cpus()[0]?.model,
  load: loadavg(),
  syncMs: syncMs(),
  pinned: canPin,
  ...{ rounds, seconds, quick },
});

let ending;
const end = () => (ending ??= takeDown().then(removeOwnContainers));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, async () => {
    if (ending === undefined) say('Interrupted: stopping what was started …');
    await end();
    process.exit(128 + constants.signals[signal]);
  });
// Its launcher was killed.
process.on('disconnect', () => process.emit('SIGTERM'));
try {
  await main();
} catch (error) {
  // After an interruption the other failures need no explanation.
  if (ending === undefined) process.stderr.write(`${error instanceof SetupError ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
await end();
process.exit();
