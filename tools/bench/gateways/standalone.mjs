// The standalone form: Node on the measured core, its PostgreSQL on the other, as another machine's would be.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ROOT } from '../../setup/prepare.mjs';
import { collector, INSPECTABLE } from '../machine/inspector.mjs';
import { MEASURED, pin, REST, startNode } from '../machine/processes.mjs';
import { atEnd } from '../machine/take-down.mjs';
import { treeOf } from '../machine/usage.mjs';
import { configOf, newTenant, usableHeaders } from './tollgate.mjs';

/**
 * @param {{ url: string }} backend
 * @param {{ nodeOptions?: string[], directory?: string }} [options]  `nodeOptions`: more of them for the process that
 *   is profiled; `directory`: of data that is kept
 */
export async function startStandalone(backend, { nodeOptions = [], directory } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const removeHome = atEnd(async () => rmSync(home, { recursive: true, force: true }));
  const data = directory === undefined ? join(home, 'data') : resolve(directory);
  mkdirSync(data, { recursive: true });
  writeFileSync(join(home, 'tollgate.yaml'), configOf(backend.url));
  const began = performance.now();
  // The options that `npm start` gives it.
  const options = [
    '--max-semi-space-size=16',
    '--no-allocation-site-pretenuring',
    '--heap-growing-percent=60',
    '--v8-pool-size=1',
    '--enable-source-maps',
    INSPECTABLE,
    ...nodeOptions,
  ];
  const running = startNode(MEASURED, [...options, join(ROOT, 'apps/standalone/dist/main.js'), '--json'], {
    env: {
      MALLOC_ARENA_MAX: '2',
      TOLLGATE_PORT: '0',
      // It has one core.
      TOLLGATE_WORKERS: '1',
      TOLLGATE_CONFIG: join(home, 'tollgate.yaml'),
      TOLLGATE_DATA_DIR: data,
      TOLLGATE_LOG_LEVEL: 'warn',
      TOLLGATE_DEMO: 'false',
    },
  });
  const { inferenceUrl: url, operatorUrl, operatorSecret, console } = JSON.parse(await running.firstLine);
  const firstStartMs = Math.round(performance.now() - began);
  const [pid, , , port, socketDirectory] = readFileSync(join(data, 'postgres/postmaster.pid'), 'utf8').split('\n');
  const postmaster = Number(pid);
  // Processes that it starts from now on inherit its core.
  pin(REST, treeOf([postmaster]));
  return {
    name: 'standalone',
    url,
    operatorUrl,
    operatorSecret,
    console,
    headers: await usableHeaders(url, await newTenant({ operatorUrl, operatorSecret })),
    // The postmaster is no child of Node: pg_ctl has started it.
    parts: { standalone: [running.pid], PostgreSQL: [postmaster] },
    measured: 'standalone',
    memory: collector(running),
    firstStartMs,
    database: {
      host: socketDirectory,
      port: Number(port),
      user: 'postgres',
      password: readFileSync(join(data, 'postgres.password'), 'utf8').trim(),
      database: 'tollgate',
    },
    async stop() {
      await running.stop();
      await removeHome();
    },
  };
}
