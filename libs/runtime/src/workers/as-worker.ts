import cluster from 'node:cluster';
import type { Health } from '../health/health';
import { metrics } from '../metrics/metrics';
import { Channel } from './channel';
import { beat } from './heartbeat';

/** For an answer of the primary process during the start. A busy machine may need long. */
const START_DEADLINE_MS = 30_000;

let primary: Channel | undefined;

/** Whether this process is a worker of `Workers`. */
export const isWorker = (): boolean => cluster.isWorker;

/** In a worker, before it starts: answers the questions of the primary process, and tells it that this one lives. */
export function answerPrimary(health: Health): Channel {
  primary = new Channel(process, {
    readiness: () => health.readiness(),
    metrics: () => metrics.getMetricsAsJSON(),
  });
  beat(primary);
  return primary;
}

/** In a worker: what the primary process gives it for its start. */
export const askForSetup = (from: Channel): Promise<unknown> => from.ask('setup', undefined, START_DEADLINE_MS);

/**
 * All metrics in the text format of Prometheus: of this process, or in a worker of all workers together. Rejects in a
 * worker when the primary process does not answer.
 */
export async function allMetrics(): Promise<string> {
  return primary ? ((await primary.ask('metrics')) as string) : ofPrimary();
}

let ofPrimary = (): Promise<string> => metrics.metrics();

/** In the primary process: what `allMetrics` returns. */
export function gatherMetricsBy(gather: () => Promise<string>): void {
  ofPrimary = gather;
}
