import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { readSettings, type SimulatorConfig } from './config/settings';
import { startSimulator } from './serve/start';

const USAGE = 'usage: main.js [--host 127.0.0.1] [--port 0] [--config simulator.yaml]';

/** Prints one line, `{"url": …}`, when it listens; ends on SIGINT or SIGTERM. Whatever is wrong before that: one line on stderr, exit code 1. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '0' },
      config: { type: 'string' },
    },
  });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`--port must be from 0 to 65535; ${USAGE}`);
  const config =
    values.config === undefined ? {} : ((parse(await readFile(values.config, 'utf8')) ?? {}) as SimulatorConfig);
  readSettings(config); // Before host and port join it: neither is a field of the file.
  const simulator = await startSimulator({ ...config, host: values.host, port });
  process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
  const stop = (): void => void simulator.close();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

main().catch((error: unknown) => {
  process.stderr.write(`simulator: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
