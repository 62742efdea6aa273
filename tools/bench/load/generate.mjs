// Starts the load and the model backend, which share the core of everything that is not measured.
import { join } from 'node:path';
import { REST, runNode, startNode } from '../machine/processes.mjs';

/** Runs load.mjs and returns what it measured; load.mjs says what it takes. */
export const load = async (options) =>
  JSON.parse(await runNode(REST, [join(import.meta.dirname, 'load.mjs'), JSON.stringify(options)]));

/** @param {{ port?: number }} [options] the port is any free one, unless something outside has to know it */
export async function startBackend({ port = 0 } = {}) {
  const running = startNode(REST, [join(import.meta.dirname, 'backend.mjs'), String(port)]);
  const { url } = JSON.parse(await running.firstLine);
  return { url, pids: [running.pid], stop: running.stop };
}
