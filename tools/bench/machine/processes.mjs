// Starts what is measured, and what stands beside it, each on its core.
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { atEnd } from './take-down.mjs';

/** The measured process has the first core. All others (servers, other services, backend, load) have the second. */
export const MEASURED = 0;
export const REST = 1;
export const canPin = cpus().length > 1 && spawnSync('taskset', ['-V']).status === 0;

const STOP_TIMEOUT_MS = 60_000;
const ANSWER_EVERY_MS = 50;
const STDERR_SHOWN_CHARS = 3_000;

const children = new Set();
// On an abrupt exit, children still get SIGTERM and stop in order: the standalone form stops its PostgreSQL.
process.on('exit', () => {
  for (const child of children) child.kill('SIGTERM');
});

/**
 * @typedef {{ pid: number, firstLine: Promise<string>, ended: () => boolean, stderr: () => string,
 *   stop: () => Promise<void> }} Running  `stop` in order, or else after a minute; at the end of the run at the latest
 */

/** Starts a program on a core. @returns {Running} */
export function start(core, command, args, { env = {}, cwd } = {}) {
  const child = spawn(...pinned(core, command, args), {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr = (stderr + chunk).slice(-STDERR_SHOWN_CHARS)));
  const exited = new Promise((resolve) => child.once('close', resolve));
  void exited.then(() => children.delete(child));
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  const firstLine = new Promise((resolve, reject) => {
    let out = '';
    child.stdout.on('data', (chunk) => {
      if (out.includes('\n')) return;
      out += chunk;
      if (out.includes('\n')) resolve(out.split('\n')[0]);
    });
    child.once('error', reject);
    void exited.then((code) => reject(new Error(`${args[0]} ended (${code}) before it was ready:\n${stderr}`)));
  });
  firstLine.catch(() => {}); // Not everybody waits for it.
  return {
    pid: child.pid,
    firstLine,
    ended,
    stderr: () => stderr,
    stop: atEnd(async () => {
      if (!ended()) child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timer);
    }),
  };
}

/** Starts a Node program on a core. @returns {Running} */
export const startNode = (core, args, options) => start(core, process.execPath, args, options);

/** Runs a program on a core to its end; resolves with its stdout. */
function runOn(core, command, args, { env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const [file, all] = pinned(core, command, args);
    execFile(file, all, { env: { ...process.env, ...env }, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command} ${args.slice(0, 3).join(' ')} failed:\n${stderr.slice(-3_000)}`));
      else resolve(stdout);
    });
  });
}

export const runNode = (core, args, options) => runOn(core, process.execPath, args, options);

function pinned(core, command, args) {
  return canPin && core !== null ? ['taskset', ['-c', String(core), command, ...args]] : [command, args];
}

/** Moves processes that run already, with all their threads. */
export function pin(core, pids) {
  if (canPin) for (const pid of pids) spawnSync('taskset', ['-a', '-p', '-c', String(core), String(pid)]);
}

/** Asks again and again until `question` does not throw, or the process that should answer has ended. */
export async function answered(question, { timeoutMs, running }) {
  const until = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await question();
    } catch (error) {
      if (running?.ended()) throw new Error(`it ended:\n${running.stderr()}`, { cause: error });
      if (performance.now() > until)
        throw new Error(`no answer within ${timeoutMs / 1_000} s: ${error.message}\n${running?.stderr() ?? ''}`, {
          cause: error,
        });
    }
    await delay(ANSWER_EVERY_MS);
  }
}

/** A port of 127.0.0.1 that nobody listens on right now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port: 0, host: '127.0.0.1' }, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
