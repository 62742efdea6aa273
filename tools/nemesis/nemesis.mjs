// `npm run nemesis`: random pairs and triples of faults on the composed services, from a seed. Compiles the TypeScript
// of test/faults when it is loaded.
import { transformFileSync } from '@swc/core';
import Module, { createRequire } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { swcOptions } from '../build/swc.mjs';
import { requireDocker } from '../stack/docker.mjs';
import { ROOT, SetupError } from '../setup/prepare.mjs';

const USAGE = `Usage: npm run nemesis [-- --minutes 60] [-- --seed N] [-- --only 7]
  --minutes   begin new rounds during this time (10)
  --seed      play the plan of this seed: the same faults, order, times and offsets (random by default)
  --only      play only this round of the plan; may be given several times`;
const MAX_SEED = 1_000_000;
const require = createRequire(import.meta.url);

Module._extensions['.ts'] = (module, file) => {
  const { code } = transformFileSync(file, { ...swcOptions, sourceMaps: 'inline' });
  module._compile(code, file);
};
// The fixtures of the tests need the global `expect`.
globalThis.expect = createRequire(require.resolve('@jest/core'))('expect').expect;

const number = (text, least) => {
  if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text);
  throw new SetupError(`${text} must be a whole number of at least ${least}\n${USAGE}`);
};

function options() {
  const spec = { minutes: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string', multiple: true } };
  try {
    const { values } = parseArgs({ options: { ...spec, help: { type: 'boolean', short: 'h' } } });
    return values;
  } catch (error) {
    throw new SetupError(`${error.message}\n${USAGE}`);
  }
}

async function main() {
  const values = options();
  if (values.help) return void process.stdout.write(`${USAGE}\n`);
  const seed = number(values.seed ?? String(Math.floor(Math.random() * MAX_SEED)), 0);
  const minutes = number(values.minutes ?? '10', 1);
  const only = (values.only ?? []).map((text) => number(text, 1));
  await requireDocker();
  const folder = join(
    ROOT,
    'nemesis-results',
    `${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}-seed-${seed}`,
  );
  const { NemesisRun } = require('../../test/faults/nemesis/run.ts');
  const run = new NemesisRun({ seed, minutes, only, folder, say: (text) => process.stdout.write(`${text}\n`) });
  let ending;
  const end = () => (ending ??= run.remove());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, async () => {
      if (!ending) process.stderr.write('Interrupted: removing the containers …\n');
      await end().catch((error) => process.stderr.write(`${error.message}\n`));
      process.exit(128 + constants.signals[signal]);
    });
  }
  // The launcher was killed.
  process.on('disconnect', () => process.emit('SIGTERM'));
  try {
    if (!(await run.play())) process.exitCode = 1;
  } finally {
    await end();
  }
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof SetupError ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
// Do not wait for open requests or for the channel to the launcher.
process.exit();
