// `npm run bench -- --hostile`: sends the worst known request bodies, one by one and beside other requests. Prints:
// - the CPU time of the event loop's thread for each, as a ratio to a plain request of the same run
// - the longest time that each held the event loop, which needs a quiet machine
// - the latency of other requests beside a client that sends these bodies as fast as its limits allow
// - the memory of unfinished bodies
// Ends with exit code 1 if a body costs the event loop's thread more than the limit.
// Options: --seconds 8, --fuzz-rounds 0 (searches for slower bodies), --seed 1
import { connect } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../setup/prepare.mjs';
import { startStandalone } from './gateways/standalone.mjs';
import { newTenant } from './gateways/tollgate.mjs';
import { load } from './load/generate.mjs';
import { answered, pin, REST, startNode } from './machine/processes.mjs';
import { takeDown } from './machine/take-down.mjs';
import { cpuSeconds, mainThreadCpuMs, rssBytes } from './machine/usage.mjs';
import { BODIES, fuzz } from './worst-bodies.mjs';

const { values } = parseArgs({
  options: {
    hostile: { type: 'boolean' },
    seconds: { type: 'string', default: '8' },
    'fuzz-rounds': { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
  },
});
const seconds = Number(values.seconds);
const TIMES = 3;
const RATE_PER_SECOND = 100;
const MIB = 2 ** 20;
const METRICS_TIMEOUT_MS = 10_000;
const UNFINISHED = 50;
const UNFINISHED_BYTES = 9 * MIB;
const HELD_BAR_MS = 50;
const LOOP_CPU_BAR = 25;

// This process sends the requests, so it runs on the other core, as if it were another machine.
process.once('uncaughtException', async (error) => {
  console.error(error);
  await takeDown();
  process.exit(1);
});
pin(REST, [process.pid]);
const simulator = startNode(REST, [join(ROOT, 'apps/simulator/dist/main.js'), '--port', '0']);
const tollgate = await startStandalone(JSON.parse(await simulator.firstLine));
const { url, operatorUrl } = tollgate;
const [pid] = tollgate.parts.standalone;
const newKey = async (plan) => (await newTenant(tollgate, { name: 'attacker', plan })).key;
const attacker = await newKey();
// Aborted bodies count against a limit of their key.
const hoarder = await newKey();
const limited = await newKey('shipped');
const PLAIN = JSON.stringify({
  model: 'sim',
  messages: [{ role: 'user', content: 'The quick brown fox jumps over the lazy dog. '.repeat(10) }],
  max_tokens: 20,
});

async function send(body, key = attacker) {
  const answer = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  }).catch((error) => ({ status: error.cause?.code ?? error.message, text: async () => '' }));
  await answer.text();
  return answer.status;
}

/** The longest time that the event loop was held since the last call, in milliseconds. */
async function heldMs() {
  return (await metric('nodejs_eventloop_lag_max_seconds')) * 1_000;
}

async function metric(name) {
  // Again where the connection of the last question has ended meanwhile.
  const page = await answered(async () => (await fetch(`${operatorUrl}/metrics`)).text(), {
    timeoutMs: METRICS_TIMEOUT_MS,
  });
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(page)[1]);
}

async function measure(body, times = TIMES) {
  await heldMs();
  const before = [cpuSeconds([pid]), mainThreadCpuMs(pid)];
  let status;
  for (let i = 0; i < times; i++) status = await send(body);
  const loopMs = (mainThreadCpuMs(pid) - before[1]) / times;
  return { status, heldMs: await heldMs(), loopMs, cpuMs: ((cpuSeconds([pid]) - before[0]) * 1_000) / times };
}

for (let i = 0; i < 300; i++) await send(PLAIN);
// Measured first: later, the memory that the process took for the worst bodies would hide the difference.
const memoryBefore = rssBytes([pid]);
const sockets = await Promise.all(Array.from({ length: UNFINISHED }, () => unfinished()));
await new Promise((resolve) => setTimeout(resolve, 3_000));
const memoryMiB = (rssBytes([pid]) - memoryBefore) / MIB;
const bodyMiB = (await metric('tollgate_body_bytes')) / MIB;
for (const socket of sockets) socket.destroy();
while ((await metric('tollgate_body_bytes')) > 0) await new Promise((resolve) => setTimeout(resolve, 100));

const plain = await measure(PLAIN, 200);
const rows = { plain: { bytes: PLAIN.length, ...shown(plain) } };
let worstMs = 0;
let worstLoop = 0;
for (const { name, body } of BODIES) {
  const bytes = body();
  const measured = await measure(bytes);
  worstMs = Math.max(worstMs, measured.heldMs);
  worstLoop = Math.max(worstLoop, measured.loopMs / plain.loopMs);
  rows[name] = { bytes: bytes.length, ...shown(measured), 'loop / plain': (measured.loopMs / plain.loopMs).toFixed(1) };
}
console.table(rows);

const rounds = Number(values['fuzz-rounds']);
if (rounds > 0) {
  const worst = await fuzz(Number(values.seed), async (body) => (await measure(body, 1)).loopMs, { rounds });
  console.log(
    `slowest of ${rounds} bodies from the fuzzer: ${worst.score.toFixed(1)} ms of the event loop, ` +
      `${worst.body.length} bytes, ${worst.name}`,
  );
}

const others = () =>
  load({
    url: `${url}/chat/completions`,
    headers: tollgate.headers,
    body: JSON.parse(PLAIN),
    connections: 16,
    seconds,
    ratePerSecond: RATE_PER_SECOND,
  });
const alone = await others();
const bodies = BODIES.map(({ body }) => body());
/** The latency of other requests while four connections send one hostile body after another. */
async function besideAttack(key) {
  let attacking = true;
  let sent = 0;
  const attack = (async () => {
    while (attacking) await Promise.all(Array.from({ length: 4 }, () => send(bodies[sent++ % bodies.length], key)));
  })();
  const { latencyMs } = await others();
  attacking = false;
  await attack;
  return { p99: latencyMs.p99, ratio: (latencyMs.p99 / alone.latencyMs.p99).toFixed(2), sent };
}
const shipped = await besideAttack(limited);
const unlimited = await besideAttack(attacker);

console.table({
  "event loop's CPU / a plain request's, maximum": { value: worstLoop.toFixed(1), bar: LOOP_CPU_BAR },
  'event loop held, maximum, ms': { value: worstMs.toFixed(1), bar: HELD_BAR_MS },
  'p99 of others alone, ms': { value: alone.latencyMs.p99, bar: '' },
  'p99 of others beside a key with the shipped limits, ms': { value: shipped.p99, bar: '' },
  '… / alone': { value: shipped.ratio, bar: 2 },
  '… hostile bodies sent meanwhile': { value: shipped.sent, bar: '' },
  'p99 of others beside a key without limits, ms': { value: unlimited.p99, bar: '' },
  '… / alone (without limits)': { value: unlimited.ratio, bar: '' },
  '… hostile bodies sent meanwhile (without limits)': { value: unlimited.sent, bar: '' },
  [`memory for ${UNFINISHED} unfinished bodies, MiB`]: { value: memoryMiB.toFixed(0), bar: 64 },
  '… of which counted as bodies (tollgate_body_bytes), MiB': { value: bodyMiB.toFixed(0), bar: 32 },
});
await takeDown();
if (worstLoop > LOOP_CPU_BAR) {
  console.error(
    `A body costs ${worstLoop.toFixed(1)} times a plain request's event loop CPU. The limit is ${LOOP_CPU_BAR}.`,
  );
  process.exitCode = 1;
}

/** Sends a body without its last byte. */
function unfinished() {
  const { hostname, port, host, pathname } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        [
          `POST ${pathname}/chat/completions HTTP/1.1`,
          `host: ${host}`,
          `authorization: Bearer ${hoarder}`,
          'content-type: application/json',
          `content-length: ${UNFINISHED_BYTES}\r\n\r\n`,
        ].join('\r\n'),
      );
      socket.write(Buffer.alloc(UNFINISHED_BYTES - 1, 0x20));
      resolve(socket);
    });
    socket.on('error', () => resolve(socket));
    socket.resume();
  });
}

function shown({ status, heldMs: held, loopMs, cpuMs }) {
  const round = (ms) => Number(ms.toFixed(2));
  return { status, 'held, ms': round(held), 'loop CPU, ms': round(loopMs), 'CPU, ms': round(cpuMs) };
}
