import { eventually } from '@tollgate/testing';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// Real: a separate program with two workers (test/worker-program.mjs).
const PROGRAM = join(__dirname, '../../test/worker-program.mjs');
const KILLS = 5;
const CONNECTIONS_AT_ONCE = 100;
/** More than any worker takes to answer here. */
const ANSWERED_WITHIN_MS = 10_000;
/** A request after which a worker dies has no answer to wait for. */
const DIED_WITHIN_MS = 1_000;

interface Program {
  child: ChildProcess;
  url: string;
  health: string;
  log: string;
}

const programs: ChildProcess[] = [];
afterEach(() => {
  for (const child of programs.splice(0)) child.kill('SIGKILL');
});

async function start(options: object = {}): Promise<Program> {
  const env = { ...process.env, OPTIONS: JSON.stringify(options) };
  const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  programs.push(child);
  const program = { child, url: '', health: '', log: '' };
  child.stderr!.on('data', (chunk: Buffer) => (program.log += chunk.toString()));
  // eslint-disable-next-line no-restricted-syntax -- serving or its end, whichever comes first
  await Promise.race([
    once(createInterface(child.stdout!), 'line').then(([line]) => Object.assign(program, JSON.parse(line as string))),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended with ${code}: ${program.log}`))),
  ]);
  return program;
}

/** How workers are started from now on. */
async function setStarts({ child }: Program, how: object): Promise<void> {
  const set = once(child, 'message');
  child.send(how);
  await set;
}

/**
 * Over its own connection. Resolves to the process that has answered. Undefined: the connection broke, or Node has
 * dealt it to a worker that ended before it took it. Node never closes that one.
 */
const ask = ({ url }: Program, path = '/', withinMs = ANSWERED_WITHIN_MS): Promise<number | undefined> =>
  fetch(new URL(path, url), { headers: { connection: 'close' }, signal: AbortSignal.timeout(withinMs) }).then(
    async (response) => Number(await response.text()),
    () => undefined,
  );

/** The workers that answer, when there are two. */
const workers = (program: Program): Promise<number[]> =>
  eventually(async () => {
    const pids = new Set(await Promise.all(Array.from({ length: 8 }, () => ask(program))));
    expect(pids.size).toBe(2);
    return [...pids].map(Number);
  });

const readiness = async ({ health }: Program) =>
  (await (await fetch(`${health}/readyz`)).json()) as { status: string; dependencies: Record<string, unknown> };
const ready = (program: Program) =>
  eventually(async () => expect(await readiness(program)).toMatchObject({ status: 'ok' }));

async function sample({ health }: Program, name: string): Promise<number> {
  const text = await (await fetch(`${health}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
}

interface Ending {
  time: number;
  worker: number;
  pauseMs: number;
}

/** What the first process has logged when a worker ended. */
const endings = ({ log }: Program): Ending[] =>
  log
    .split('\n')
    .filter((line) => line.endsWith('}') && line.includes('a worker has ended'))
    .map((line) => JSON.parse(line) as Ending);
/** Until the first process has noticed that workers ended this often. Its log still says so when they serve again. */
const haveEnded = (program: Program, times: number) => eventually(() => expect(endings(program)).toHaveLength(times));

it('a worker that dies while connections arrive is started again, and the first process lives on', async () => {
  const program = await start();
  for (let kill = 0; kill < KILLS; kill++) {
    const [killed] = await workers(program);
    const sockets = Array.from({ length: CONNECTIONS_AT_ONCE }, () => {
      const socket = connect(Number(new URL(program.url).port), '127.0.0.1');
      return socket.on('error', () => {});
    });
    await once(sockets[0]!, 'connect');
    process.kill(killed!, 'SIGKILL');
    await haveEnded(program, kill + 1);
    await ready(program);
    for (const socket of sockets) socket.destroy();
  }
  expect(program.child.exitCode).toBeNull();
  expect(await sample(program, 'tollgate_worker_restarts_total')).toBe(KILLS);
});

/** Makes workers die at a request until one of them has done so this often. Resolves to its endings. */
async function die(program: Program, times: number): Promise<Ending[]> {
  // While none lives, the port is free: the next one opens it by its number.
  await setStarts(program, { port: true });
  return eventually(
    async () => {
      await ask(program, '/die', DIED_WITHIN_MS);
      const all = endings(program);
      const most = [1, 2].map((slot) => all.filter(({ worker }) => worker === slot)).find((of) => of.length >= times);
      expect(most).toBeDefined();
      return most!;
    },
    { timeoutMs: 150_000 },
  );
}

it('a worker that dies at each request is started again after longer and longer pauses', async () => {
  const program = await start();
  const ended = await die(program, 6);
  // A pause of 0.2 s that doubles each time, of which half is at random.
  for (const [index, { time }] of ended.slice(1).entries())
    expect(time - ended[index]!.time).toBeGreaterThanOrEqual((200 * 2 ** index) / 2 - 10);
  // It serves again, however often that was.
  await ready(program);
  expect(await workers(program)).toHaveLength(2);
});

it('a worker that dies after it has served for a while is started again at once', async () => {
  const program = await start({ provenMs: 0 });
  for (const { pauseMs } of await die(program, 4)) expect(pauseMs).toBeLessThanOrEqual(200);
});

it('a process that cannot be started is tried again, and counts as a worker that has ended', async () => {
  const program = await start();
  const [killed] = await workers(program);
  await setStarts(program, { execPath: '/no/such/program' });
  process.kill(killed!, 'SIGKILL');
  await eventually(() => expect(program.log).toContain('it ended with ENOENT'));
  expect(await readiness(program)).toMatchObject({ status: 'unavailable' });
  await setStarts(program, {});
  await ready(program);
  expect(await workers(program)).toHaveLength(2);
});

it('a worker that stands still is killed at the end of the time of a stop', async () => {
  const program = await start();
  const [stopped, other] = await workers(program);
  process.kill(stopped!, 'SIGSTOP');
  const ended = once(program.child, 'exit');
  program.child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  expect(program.log).toContain('a worker did not stop; killing it');
  for (const pid of [stopped!, other!]) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

it('a worker that stands still is killed and started again, and the other one serves meanwhile', async () => {
  const program = await start({ standstillMs: 5_000 });
  const [stopped, other] = await workers(program);
  process.kill(stopped!, 'SIGSTOP');
  // Each worker gets one. Node keeps the connection that it has dealt to the stopped one.
  expect(await Promise.any([ask(program), ask(program)])).toBe(other);
  await eventually(() => expect(program.log).toContain('a worker stands still; killing it'));
  expect(await workers(program)).not.toContain(stopped);
});

it('a worker that only stands still for shorter times is not killed', async () => {
  const program = await start({ standstillMs: 20_000 });
  const [slow] = await workers(program);
  let times = 0;
  while (times < 3) if ((await ask(program, '/stand-still?ms=3000')) === slow) times += 1;
  expect(await workers(program)).toContain(slow);
  expect(program.log).not.toContain('stands still');
});

it('sums of counters do not go down when a worker ends or does not answer', async () => {
  const program = await start();
  const [killed, silent] = await workers(program);
  const before = await sample(program, 'asked_total');
  process.kill(silent!, 'SIGSTOP');
  expect(await sample(program, 'asked_total')).toBe(before);
  process.kill(silent!, 'SIGCONT');
  await ready(program);
  process.kill(killed!, 'SIGKILL');
  await haveEnded(program, 1);
  expect(await sample(program, 'asked_total')).toBe(before);
  await ready(program);
  expect(await sample(program, 'asked_total')).toBe(before);
  expect(await ask(program)).toBeDefined();
  await eventually(async () => expect(await sample(program, 'asked_total')).toBe(before + 1));
});

it('a port that another program takes while no worker runs does not end the first process', async () => {
  const program = await start();
  const port = Number(new URL(program.url).port);
  await setStarts(program, { port: true });
  const taken = createServer();
  await eventually(
    async () => {
      for (const pid of await workers(program)) process.kill(pid, 'SIGKILL');
      await eventually(
        () =>
          new Promise<void>((resolve, reject) =>
            taken.once('error', reject).listen(port, '127.0.0.1', () => {
              taken.off('error', reject);
              resolve();
            }),
          ),
        { timeoutMs: 1_000, everyMs: 1 },
      );
    },
    { everyMs: 1 },
  );
  await eventually(() => expect(program.log.match(/could not start; trying again/g)?.length).toBeGreaterThan(3));
  expect(program.child.exitCode).toBeNull();
  await new Promise((resolve) => taken.close(resolve));
  await ready(program);
  expect(await workers(program)).toHaveLength(2);
});
