import type { Channel } from './channel';

/** How often a worker tells the primary process that its event loop runs. */
const HEARTBEAT_MS = 1_000;
/**
 * Six times the lease of a hold: the sweeper has ended everything that ran on such a worker, and it delivers nothing
 * more. Twice the time after which the chart's probe ends a process that does not answer. A worker that is only slow,
 * or writes its heap to a file, needs less.
 */
const STANDSTILL_MS = 60_000;

/** In a worker: tells the primary process that it lives, until the process ends. */
export function beat(primary: Channel): void {
  setInterval(() => primary.tellAlive(), HEARTBEAT_MS).unref();
}

/**
 * In the primary process: calls `onStandstill` once, when the worker was silent for `limitMs`. It counts this process's
 * own turns and not the time, so a machine or container that was paused as a whole is no standstill of the worker.
 * Returns a function that ends the watch.
 */
export function watch(worker: Channel, onStandstill: () => void, limitMs = STANDSTILL_MS): () => void {
  let silentTurns = 0;
  const heard = () => void (silentTurns = 0);
  worker.onAlive = heard;
  const timer = setInterval(() => {
    silentTurns += 1;
    if (silentTurns * HEARTBEAT_MS < limitMs) return;
    clearInterval(timer);
    onStandstill();
  }, HEARTBEAT_MS);
  return () => clearInterval(timer);
}
