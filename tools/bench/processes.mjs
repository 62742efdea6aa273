// Starts the measured programs, each on its core, and reads their CPU time and memory from /proc.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';

const TICKS_PER_SECOND = 100;
const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGTERM');
});
const canPin = cpus().length > 1 && spawnSync('taskset', ['-V']).status === 0;

/** Runs a Node program pinned to a core. Resolves with the JSON of its first line. */
export async function start(core, args, env = {}) {
  const child = spawn(...pinned(core, process.execPath, args), {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  let out = '';
  for await (const chunk of child.stdout) {
    out += chunk;
    if (out.includes('\n')) break;
  }
  if (!out.includes('\n')) throw new Error(`${args[0]} ended before it was ready`);
  child.stdout?.resume?.();
  return {
    ready: JSON.parse(out.split('\n')[0]),
    pids: [child.pid],
    stop: () =>
      new Promise((resolve) => {
        child.on('exit', resolve);
        child.kill('SIGTERM');
      }),
  };
}

/** Runs load.mjs on a core and returns its measurements. */
export function load(core, options) {
  const [command, args] = pinned(core, process.execPath, [join(ROOT, 'tools/bench/load.mjs'), JSON.stringify(options)]);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    child.stdout.on('data', (chunk) => (out += chunk));
    child.on('exit', (code) =>
      code === 0 ? resolve(JSON.parse(out)) : reject(new Error(`load.mjs failed (${code})`)),
    );
  });
}

function pinned(core, command, args) {
  return canPin ? ['taskset', ['-c', String(core), command, ...args]] : [command, args];
}

/**
 * Seconds of CPU that these processes and their ended children have used so far. A process that has ended counts 0.
 */
export function cpuSeconds(pids) {
  return pids.reduce((sum, pid) => {
    const fields = readProc(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
    return sum + fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) / TICKS_PER_SECOND;
  }, 0);
}

function readProc(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Milliseconds of CPU that the first thread of a process has used. In Node.js it is the thread of the event loop.
 */
export function mainThreadCpuMs(pid) {
  return Number(readProc(pid, `task/${pid}/schedstat`).split(' ')[0]) / 1e6;
}

export function rssBytes(pids) {
  return pids.reduce((sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(readProc(pid, 'status'))?.[1] ?? 0) * 1024, 0);
}

/** Resident memory. Shared memory is counted once. */
export function pssBytes(pids) {
  return pids.reduce(
    (sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(readProc(pid, 'smaps_rollup'))?.[1] ?? 0) * 1024,
    0,
  );
}

/** The children of a process, without the process itself. */
export function childrenOf(pid) {
  try {
    return execFileSync('pgrep', ['-P', String(pid)])
      .toString()
      .trim()
      .split('\n')
      .map(Number);
  } catch {
    return [];
  }
}

export async function startSimulator(core) {
  return start(core, [join(ROOT, 'apps/simulator/dist/main.js'), '--port', '0']);
}

export async function startBareProxy(core, upstream) {
  return start(core, [join(ROOT, 'tools/bench/bare-proxy.mjs'), new URL(upstream).origin]);
}

/** nginx with `proxy_pass` and one worker, or null if it is not installed. */
export async function startNginx(core, upstream) {
  if (spawnSync('nginx', ['-v']).status !== 0) return null;
  const home = mkdtempSync(join(tmpdir(), 'tollgate-bench-nginx-'));
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  writeFileSync(
    join(home, 'nginx.conf'),
    `worker_processes 1; pid ${home}/nginx.pid; daemon off; error_log ${home}/error.log;
     events { worker_connections 4096; }
     http {
       access_log off;
       client_body_temp_path ${home}; proxy_temp_path ${home};
       fastcgi_temp_path ${home}; uwsgi_temp_path ${home}; scgi_temp_path ${home};
       keepalive_requests 1000000;
       upstream model { server ${new URL(upstream).host}; keepalive 256; keepalive_requests 1000000; }
       server {
         listen 127.0.0.1:${port};
         location / {
           proxy_pass http://model;
           proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
         }
       }
     }`,
  );
  const child = spawn(...pinned(core, 'nginx', ['-p', home, '-c', join(home, 'nginx.conf')]), { stdio: 'inherit' });
  children.add(child);
  const url = `http://127.0.0.1:${port}/v1`;
  for (let tries = 0; tries < 100; tries++) {
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    ready: { url },
    pids: childrenOf(child.pid),
    stop: () =>
      new Promise((resolve) => {
        child.on('exit', () => resolve(rmSync(home, { recursive: true, force: true })));
        child.kill('SIGTERM');
      }),
  };
}

const LIMITS = '{ requestsPerMinute: 100000000, tokensPerMinute: 1000000000000, concurrency: 100000 }';

/** The models of the shipped tollgate.yaml. */
const SHIPPED_LIMITS = {
  tenant: '{ requestsPerMinute: 6000, tokensPerMinute: 10000000, concurrency: 512 }',
  key: '{ requestsPerMinute: 600, tokensPerMinute: 1000000, concurrency: 64 }',
};

/**
 * The standalone form in front of the same upstream. Its PostgreSQL runs on `serverCore`, as if it were on another
 * machine.
 */
export async function startTollgate(core, serverCore, upstream) {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  mkdirSync(join(home, 'data'));
  writeFileSync(
    join(home, 'tollgate.yaml'),
    `models:
  - { id: sim, kind: chat, contextTokens: 100000, maxOutputTokens: 4096, passthrough: [simulator],
      price: { input: '5', output: '20' }, backends: [{ url: '${upstream}' }] }
  - { id: sim-small, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, passthrough: [simulator, metadata],
      price: { input: '5', output: '20' }, backends: [{ url: '${upstream}' }] }
plans:
  - { id: default, limits: ${LIMITS}, profiles: [{ id: default, limits: ${LIMITS} }] }
  - { id: shipped, limits: ${SHIPPED_LIMITS.tenant}, profiles: [{ id: default, limits: ${SHIPPED_LIMITS.key} }] }
`,
  );
  const env = {
    TOLLGATE_PORT: '0',
    TOLLGATE_CONFIG: join(home, 'tollgate.yaml'),
    TOLLGATE_DATA_DIR: join(home, 'data'),
    TOLLGATE_LOG_LEVEL: 'warn',
  };
  const began = performance.now();
  const running = await start(
    core,
    ['--max-semi-space-size=16', join(ROOT, 'apps/standalone/dist/main.js'), '--json'],
    env,
  );
  const firstStartMs = Math.round(performance.now() - began);
  const postmaster = Number(readFileSync(join(home, 'data/postgres/postmaster.pid'), 'utf8').split('\n')[0]);
  if (canPin)
    for (const pid of [postmaster, ...childrenOf(postmaster)])
      spawnSync('taskset', ['-p', '-c', String(serverCore), String(pid)]);
  const { demo, operatorUrl, operatorSecret } = running.ready;
  const credit = await fetch(`${operatorUrl}/_operator/v1/tenants/${demo.tenantId}/credit`, {
    method: 'POST',
    headers: { authorization: `Bearer ${operatorSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amountCents: 1_000_000_000, ref: 'bench' }),
  });
  if (!credit.ok) throw new Error(`credit: ${credit.status} ${await credit.text()}`);
  return {
    ...running,
    ready: { ...running.ready, url: running.ready.inferenceUrl },
    headers: { authorization: `Bearer ${demo.key}` },
    firstStartMs,
    serverPids: () => [postmaster, ...childrenOf(postmaster)],
    dataDirectory: join(home, 'data'),
    stop: async () => {
      await running.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
