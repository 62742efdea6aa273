import { setPriority } from 'node:os';

const NICENESS = 10;

/**
 * Lowers the priority of this worker thread. On a shared core the main thread goes first, because it serves all
 * requests. Only Linux has a priority per thread: elsewhere this would change the whole process.
 */
export function yieldToMain(): void {
  if (process.platform === 'linux') setPriority(NICENESS);
}
