import '@tollgate/runtime/own-source-maps';
import { readConfigFile, runProgram } from '@tollgate/runtime';
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
      // Loaded only now, so that settings are validated within milliseconds.
      const { startStandalone } = await import('./standalone.js');
      const { readyJson, readyText } = await startStandalone(settings, takeDown);
      process.stdout.write(`${flags.has('--json') ? readyJson : readyText}\n`);
    },
  },
  process.argv.slice(2),
);
