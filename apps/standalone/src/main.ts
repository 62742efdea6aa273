import '@tollgate/runtime/catch-signals';
import '@tollgate/runtime/own-source-maps';
import { isWorker, readConfigFile, runProgram, type TakeDown } from '@tollgate/runtime';
import type { ReadyLines } from './ready';
import { readSettings, type StandaloneSettings } from './settings';

const USAGE = `Usage: npm start [-- --json | --validate]
  --json      when ready, print one line of JSON instead of the text
  --validate  check the settings and tollgate.yaml, and exit
Settings are environment variables: docs/operating/settings.md.`;

runProgram<StandaloneSettings>(
  {
    name: 'standalone',
    usage: USAGE,
    flags: ['--json'],
    settings: readSettings,
    validate({ TOLLGATE_CONFIG: file }) {
      readConfigFile(file, process.env);
      return `The settings and ${file} are valid.`;
    },
    async start(settings, takeDown, flags) {
      const ready = await startProcess(settings, takeDown);
      if (ready) process.stdout.write(`${flags.has('--json') ? ready.readyJson : ready.readyText}\n`);
    },
  },
  process.argv.slice(2),
);

/**
 * One worker is the whole instance in one process. Several are started by a separate process, which runs this file
 * again for each. Each part is loaded only now, so that settings are validated within milliseconds.
 */
async function startProcess(settings: StandaloneSettings, takeDown: TakeDown): Promise<ReadyLines | null> {
  if (isWorker()) {
    const { startWorker } = await import('./processes/worker.js');
    await startWorker(settings, takeDown);
    return null;
  }
  if (settings.TOLLGATE_WORKERS === 1) {
    const { startAlone } = await import('./processes/alone.js');
    return startAlone(settings, takeDown);
  }
  const { startPrimary } = await import('./processes/primary.js');
  return startPrimary(settings, takeDown);
}
