import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Ready } from '../../e2e/deployment';
import { StandaloneProcess } from '../../e2e/standalone-process';

const QUICK_PASSWORDS = pathToFileURL(join(__dirname, 'quick-passwords.mjs')).href;

export interface RunningConsole {
  process: StandaloneProcess;
  /** The origin of its pages. */
  base: string;
  /** Makes the first operator. Null if there is one, or if the console is turned off. */
  operatorLink: string | null;
  inferenceUrl: string;
  managementUrl: string;
  operatorUrl: string;
  operatorSecret: string;
  demo: { tenantId: string; key: string; token: string } | null;
  stop(): Promise<void>;
}

interface ReadyLine extends Ready {
  console?: { url: string; firstOperatorLink: string | null };
}

/** The standalone form with its console, on free ports. `env` may turn it off. */
export async function startConsole(env: Record<string, string>): Promise<RunningConsole> {
  const process = await StandaloneProcess.start({
    // Unset, as users start it: it is on by default.
    TOLLGATE_CONSOLE: '',
    TOLLGATE_OPERATOR_PORT: '0',
    TOLLGATE_DEMO: 'false',
    NODE_OPTIONS: `--import ${QUICK_PASSWORDS}`,
    ...env,
  });
  const ready = process.ready as unknown as ReadyLine;
  return {
    process,
    base: ready.console ? new URL(ready.console.url).origin : new URL(ready.inferenceUrl).origin,
    operatorLink: ready.console?.firstOperatorLink ?? null,
    inferenceUrl: ready.inferenceUrl,
    managementUrl: ready.managementUrl,
    operatorUrl: ready.operatorUrl,
    operatorSecret: ready.operatorSecret,
    demo: ready.demo ?? null,
    stop: async () => void (await process.end()),
  };
}
