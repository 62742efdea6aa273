// What tracing costs a request, in processor time of this process: node tools/bench/tracing.mjs [requests]. Needs a
// compiled checkout. Plays the end of a streamed request, with the calls that the pipeline makes, against a receiver in
// another process, and prints microseconds for each request.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { ROOT } from '../setup/prepare.mjs';

const REQUESTS = Number(process.argv[2] ?? 20_000);
/** Requests between two pauses, as a gateway has them. Without pauses the queue of spans would overflow. */
const BATCH = 20;
const STAGES = ['authenticate', 'read', 'admit', 'upstream', 'settle'];

const require = createRequire(join(ROOT, 'apps/gateway/package.json'));
const { openTracer } = require('@tollgate/runtime');
const { RequestTrace } = require(join(ROOT, 'apps/gateway/dist/inference/report/request-trace.js'));

const RECEIVER = `
  require('node:http').createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  }).listen(0, '127.0.0.1', function () { process.stdout.write(String(this.address().port)); });`;

const event = { promptTokens: 20, completionTokens: 200, backend: 'http://10.0.0.1:8000/v1', costNanos: '1234' };
const request = { kind: 'chat', id: 'req_x', model: 'sim', owner: { tenantId: 'ten_x', keyId: 'key_x' } };

/** One request. Without a tracer it does what the pipeline does then: it looks at a null. */
function play(tracer) {
  const traced = tracer ? new RequestTrace(tracer, null) : null;
  for (const stage of STAGES) traced?.ended(stage);
  return traced?.finish(request, 'complete', { event, firstTokenAtMs: performance.now() });
}

async function measure(tracer) {
  for (let count = 0; count < 1_000; count += 1) play(tracer);
  await setImmediate();
  const from = process.cpuUsage();
  for (let count = 0; count < REQUESTS; count += 1) {
    play(tracer);
    if (count % BATCH === 0) await setImmediate();
  }
  await tracer?.close();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / REQUESTS;
}

const receiver = spawn(process.execPath, ['--eval', RECEIVER], { stdio: ['ignore', 'pipe', 'inherit'] });
const port = await new Promise((done) => receiver.stdout.once('data', (data) => done(Number(data))));
const settings = { TOLLGATE_TRACES_URL: `http://127.0.0.1:${port}/v1/traces`, TOLLGATE_TRACES_SLOW_MS: 60_000 };
for (const percent of [null, 0, 1, 100]) {
  const tracer = percent === null ? null : await openTracer({ ...settings, TOLLGATE_TRACES_PERCENT: percent }, 'bench');
  const micros = await measure(tracer);
  console.log(`${percent === null ? 'off' : `${percent} %`}: ${micros.toFixed(2)} µs a request`);
}
receiver.kill();
