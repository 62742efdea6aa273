// What the npm scripts run: prepares the checkout, then starts the command on Node 24. No dependencies, as there may be none yet.
import { watch } from 'node:fs';
import { join } from 'node:path';
import { launch } from './setup/launch.mjs';
import { prepare, ROOT, SetupError } from './setup/prepare.mjs';

const REBUILD_DELAY_MS = 150;
const [command, ...args] = process.argv.slice(2);

const STANDALONE = [
  '--max-semi-space-size=64',
  '--enable-source-maps',
  join(ROOT, 'apps', 'standalone', 'dist', 'main.js'),
  ...args,
];
const COMMANDS = {
  start: () => launch(STANDALONE).exited,
  dev,
  test: () =>
    launch([join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js'), '--config', join(ROOT, 'jest.config.mjs'), ...args], {
      cwd: ROOT,
    }).exited,
  bench: () => launch([join(ROOT, 'tools', 'bench', 'bench.mjs'), ...args]).exited,
};

/** As `start`, compiled and started again whenever a source changes. */
async function dev() {
  let change = deferred();
  let timer;
  for (const folder of ['apps', 'libs']) {
    watch(join(ROOT, folder), { recursive: true }, (_event, name) => {
      if (!name || !/[\\/]src[\\/]/.test(name)) return;
      clearTimeout(timer);
      timer = setTimeout(() => change.resolve('changed'), REBUILD_DELAY_MS);
    });
  }
  for (;;) {
    const running = launch(STANDALONE);
    const event = await Promise.race([change.promise, running.exited]);
    if (event !== 'changed') {
      // Stopped by hand: so are we. Fallen over: wait for the next change.
      if (event === 0 || event >= 128) return event;
      await change.promise;
    }
    running.stop();
    await running.exited;
    change = deferred();
    await prepare().catch((error) => process.stderr.write(`${error.message}\n`));
  }
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

try {
  await prepare();
  process.exitCode = await COMMANDS[command]();
  if (command === 'dev') process.exit();
} catch (error) {
  process.stderr.write(error instanceof SetupError ? `${error.message}\n` : `${error.stack}\n`);
  process.exitCode = 1;
}
