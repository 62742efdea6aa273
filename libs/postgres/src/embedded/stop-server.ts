import { delay } from '@tollgate/runtime';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerUser } from './run-as';

const STOP_TIMEOUT_MS = 60_000;
const LOOK_MS = 20;

/**
 * Stops the server on this cluster and waits until it has ended. Another process may start the next server there at
 * once. `pg_ctl stop -w` would wait for that one, too. Rejects if the server does not end within a minute.
 */
export async function stopServer(cluster: string, pg_ctl: string, user: Pick<ServerUser, 'run'>): Promise<void> {
  const pid = serverOf(cluster);
  await user.run(pg_ctl, ['stop', '-W', '-s', '-m', 'fast', '-D', cluster]);
  const untilMs = performance.now() + STOP_TIMEOUT_MS;
  while (serverOf(cluster) === pid && isAlive(Number(pid))) {
    if (performance.now() >= untilMs) throw new Error(`PostgreSQL on ${cluster} does not stop.`);
    await delay(LOOK_MS);
  }
}

/** The process id in the file that a server removes last. Null: no server. */
function serverOf(cluster: string): string | null {
  try {
    return readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0]!;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** A server that was killed leaves its file. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
