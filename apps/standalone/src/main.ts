import { configureLogging, ConfigError, logger, readConfigFile } from '@tollgate/runtime';
import { SettingsError, readSettings } from './settings';

const USAGE = `Usage: npm start [-- --json | --validate]
  --json      when ready, print one line of JSON instead of the text
  --validate  check the settings and tollgate.yaml, and exit
Settings are environment variables: docs/operating.md.`;

/** Exit code 0 after a clean stop, 1 when it cannot start, with one clear line on stderr for each reason. */
async function main(args: readonly string[]): Promise<number> {
  const unknown = args.find((arg) => !['--json', '--validate', '--help', '-h'].includes(arg));
  if (unknown !== undefined) throw new SettingsError(`There is no option ${unknown}.\n${USAGE}`);
  if (args.includes('--help') || args.includes('-h')) {
    console.log(USAGE);
    return 0;
  }
  const settings = readSettings(process.env);
  configureLogging({ level: settings.logLevel, pretty: process.stderr.isTTY });
  if (args.includes('--validate')) {
    readConfigFile(settings.configFile, process.env);
    console.log(`The settings and ${settings.configFile} are valid.`);
    return 0;
  }

  // From here on a signal asks for a clean stop, also while starting. Further ones are the same wish again.
  const stopWanted = new Promise<string>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(signal));
    process.on('disconnect', () => resolve('the launcher is gone'));
  });
  // Loaded only now: settings are judged in milliseconds.
  const { startStandalone } = await import('./standalone.js');
  const standalone = await startStandalone(settings);
  try {
    process.stdout.write(`${args.includes('--json') ? standalone.readyJson : standalone.readyText}\n`);
    logger('standalone').info(`stopping: ${await stopWanted}`);
  } finally {
    await standalone.stop();
  }
  return 0;
}

main(process.argv.slice(2)).then(
  (code) => {
    // After what is still on its way into a pipe. An exit all the same: nothing that was forgotten open may keep us.
    process.stdout.write('', () => process.exit(code));
  },
  (error: unknown) => {
    const { operator, message, stack } = error as { operator?: boolean; message?: string; stack?: string };
    const text = operator || error instanceof ConfigError ? message : stack;
    process.stderr.write(`${(text ?? String(error)).replace(/^(?=.)/gm, 'tollgate: ')}\n`);
    process.exit(1);
  },
);
