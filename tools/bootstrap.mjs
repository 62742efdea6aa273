// The entry of the npm scripts: prepares the checkout, then starts the command on Node 24. Imports only Node, because
// nothing may be installed yet.
import { join } from 'node:path';
import { launch } from './setup/launch.mjs';
import { fingerprints, prepare, ROOT, SetupError } from './setup/prepare.mjs';

const LOOK_INTERVAL_MS = 500;
const [command, ...args] = process.argv.slice(2);

// docs/performance.md says what each flag of V8 does, and why glibc gets two arenas. A young generation four times as
// large costs 90 MB more under load and saves no CPU per request.
const STANDALONE = [
  '--max-semi-space-size=16',
  '--no-allocation-site-pretenuring',
  '--heap-growing-percent=60',
  '--v8-pool-size=1',
  '--enable-source-maps',
  join(ROOT, 'apps', 'standalone', 'dist', 'main.js'),
  ...args,
];
const ENVIRONMENT = { MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX ?? '2' };
const startStandalone = () => launch(STANDALONE, { env: ENVIRONMENT });
// Jest's workers inherit the flag. It spares the collector a tenth of the processor time of the tests, which load many
// modules and are short.
const ROOM_FOR_LOADING = '--min-semi-space-size=16';
const COMMANDS = {
  start: () => startStandalone().exited,
  dev,
  test: () =>
    launch(
      [
        ROOM_FOR_LOADING,
        ...(args.some((arg) => /^--changed(=|$)/.test(arg))
          ? [join(ROOT, 'tools', 'changed', 'changed.mjs')]
          : [join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js'), '--config', join(ROOT, 'jest.config.mjs')]),
        ...args,
      ],
      { cwd: ROOT },
    ).exited,
  stack: () => launch([join(ROOT, 'tools', 'stack', 'stack.mjs'), 'up', ...args]).exited,
  'stack:down': () => launch([join(ROOT, 'tools', 'stack', 'stack.mjs'), 'down', ...args]).exited,
  bench: () =>
    launch([join(ROOT, 'tools', 'bench', args.includes('--hostile') ? 'hostile.mjs' : 'bench.mjs'), ...args]).exited,
  nemesis: () => launch([join(ROOT, 'tools', 'nemesis', 'nemesis.mjs'), ...args]).exited,
  kubernetes: () => launch([join(ROOT, 'tools', 'kubernetes', 'kubernetes.mjs'), ...args]).exited,
  docs: () => launch([join(ROOT, 'tools', 'docs', 'docs.mjs'), ...args]).exited,
};

/**
 * Like `start`, but compiles and starts again after each change of a source. Polls, because file watchers lose files
 * that an editor replaces.
 */
async function dev() {
  const sources = () => JSON.stringify(fingerprints());
  for (let built = true; ;) {
    const seen = sources();
    const running = built ? startStandalone() : null;
    let code = null;
    void running?.exited.then((exitCode) => (code = exitCode));
    while (sources() === seen) {
      // After a stop by hand, stop as well. After a crash, wait: the next change may fix it.
      if (code === 0 || code >= 128) return code;
      await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    }
    running?.stop();
    await running?.exited;
    built = await prepare().then(
      () => true,
      (error) => void process.stderr.write(`${error.message}\nWaiting for the next change …\n`),
    );
  }
}

try {
  await prepare();
  process.exitCode = await COMMANDS[command]();
  if (command === 'dev') process.exit();
} catch (error) {
  process.stderr.write(error instanceof SetupError ? `${error.message}\n` : `${error.stack}\n`);
  process.exitCode = 1;
}
