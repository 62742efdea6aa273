import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { readSettings, type SimulatorConfig } from './config/settings';
import { startSimulator, type Simulator } from './serve/start';

const USAGE = 'usage: main.js [--host 127.0.0.1] [--port 0] [--config simulator.yaml]';

/**
 * Starts the simulator that the command line describes. Throws an error of one line if an argument, the file, its
 * content or the port is wrong.
 */
export async function run(args: string[]): Promise<Simulator> {
  const { host, port, file } = readArguments(args);
  if (file === undefined) return startSimulator({ host, port });
  const config = readYaml(file, await readFile(file, 'utf8'));
  readSettings(config); // Before host and port are added, because neither is a field of the file.
  return startSimulator({ ...(config as SimulatorConfig), host, port });
}

/** Without the lines in which the parser shows the place of an error. An empty file is an empty object. */
function readYaml(file: string, text: string): unknown {
  try {
    return parse(text) ?? {};
  } catch (error) {
    const [what] = (error as Error).message.split('\n', 1);
    throw new Error(`${file}: ${what!.replace(/:$/, '')}`, { cause: error });
  }
}

function readArguments(args: string[]): { host: string; port: number; file: string | undefined } {
  const { values } = parseArgs({
    args,
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '0' },
      config: { type: 'string' },
    },
  });
  const port = Number(values.port);
  if (values.port === '' || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(`--port must be from 0 to 65535; ${USAGE}`);
  return { host: values.host, port, file: values.config };
}
