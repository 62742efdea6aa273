// A program of two workers that serve one port, for workers.test.ts. It prints { url, health } when it serves. Each
// answer is the id of its process; /die ends that process first, and /stand-still?ms= blocks it. OPTIONS in the
// environment, as JSON, are those of `Workers`. A message of its parent sets how workers are started from now on:
// { port: true } opens that of the first ones by its number, { execPath } runs another program.
import runtime from '@tollgate/runtime';
import { createServer } from 'node:http';

const { answerPrimary, Counter, Health, HealthServer, isWorker, metrics, runProgram, Workers } = runtime;
const { PORT = '0', OPTIONS = '{}' } = process.env;
const HOST = '127.0.0.1';

const asked = new Counter({ name: 'asked_total', help: 'Requests', registers: [metrics] });

async function work(health, takeDown) {
  const primary = answerPrimary(health);
  const server = createServer((request, response) => {
    asked.inc();
    const { pathname, searchParams } = new URL(request.url, `http://${HOST}`);
    if (pathname === '/die') process.kill(process.pid, 'SIGKILL');
    if (pathname === '/stand-still') standStill(Number(searchParams.get('ms')));
    response.end(String(process.pid));
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(Number(PORT), HOST, resolve));
  takeDown.add('requests', () => server.closeAllConnections());
  health.state = 'serving';
  primary.tellServing(server.address().port);
}

/** Blocks the event loop. */
const standStill = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

runProgram(
  {
    name: 'test',
    usage: '',
    settings: () => ({ TOLLGATE_LOG_LEVEL: 'debug' }),
    validate: () => '',
    async start(_settings, takeDown) {
      const health = new Health();
      if (isWorker()) return work(health, takeDown);
      const workers = new Workers('test', 2, health, { stopTimeoutMs: 1_000, ...JSON.parse(OPTIONS) });
      takeDown.add('requests', () => workers.stop());
      const port = await workers.start();
      const server = await HealthServer.listen(health, HOST, 0, []);
      takeDown.add('requests', () => server.close());
      health.state = 'serving';
      const { execPath } = process;
      process.on('message', ({ execPath: other, port: fixed }) => {
        process.execPath = other ?? execPath;
        if (fixed) process.env.PORT = String(port);
        process.send('set');
      });
      process.stdout.write(`${JSON.stringify({ url: `http://${HOST}:${port}`, health: server.url })}\n`);
    },
  },
  [],
);
