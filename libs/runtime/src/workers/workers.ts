import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import type { Health, Readiness } from '../health/health';
import { logger } from '../logging';
import { Counter, metrics, onlyFrom } from '../metrics';
import { StartError } from '../process/start-error';
import { backoffMs, delayUntilAborted } from '../timing';
import { allMetrics, gatherMetricsBy } from './as-worker';
import { Channel } from './channel';

const RESTART_BASE_MS = 200;
const MAX_RESTART_MS = 10_000;

type Metrics = MetricObjectWithValues<MetricValue<string>>[];

const restarts = new Counter({
  name: 'tollgate_worker_restarts_total',
  help: 'Workers of a gateway (TOLLGATE_WORKERS) that ended without being stopped, and were started again',
  registers: [metrics],
});
onlyFrom(['gateway'], 'tollgate_worker_restarts_total');

interface Running {
  worker: Worker;
  channel: Channel;
}

/**
 * Runs a service as several processes that share its ports (node:cluster). Each worker is a whole instance of the
 * service, as another replica would be. This process serves nothing itself: it starts a worker again that has died,
 * answers for the readiness and the metrics of all, and stops them.
 */
export class Workers {
  private readonly running = new Map<number, Running>();
  private readonly stopping = new AbortController();

  /** @param name of the service */
  constructor(
    private readonly name: string,
    private readonly count: number,
    private readonly health: Health,
  ) {
    gatherMetricsBy(() => this.metrics());
  }

  /**
   * Resolves when all workers serve. Rejects with StartError when one cannot start: its own line says why. The first
   * worker starts alone, so that a wrong setting is reported once.
   */
  async start(): Promise<void> {
    await this.launch(1);
    const others = Array.from({ length: this.count - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((slot) => this.launch(slot)));
    for (const slot of [1, ...others])
      this.health.depend(`worker ${slot}`, { required: true, check: () => this.check(slot) });
  }

  /** Stops the workers as a signal does, and resolves when all have ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(
      [...this.running.values()].map(({ worker }) => {
        const ended = new Promise((resolve) => worker.once('exit', resolve));
        worker.process.kill('SIGTERM');
        return ended;
      }),
    );
  }

  /** Resolves when the worker serves. Rejects when it ends before. From then on it is kept running. */
  private async launch(slot: number): Promise<void> {
    const worker = cluster.fork();
    const channel = new Channel(worker, { metrics: allMetrics });
    this.running.set(slot, { worker, channel });
    await new Promise<void>((resolve, reject) => {
      let serves = false;
      channel.onServing = () => {
        serves = true;
        resolve();
      };
      worker.once('exit', (code, signal) => {
        this.running.delete(slot);
        reject(new StartError(`Worker ${slot} could not start: it ended with ${signal ?? code}.`));
        if (serves && !this.stopping.signal.aborted) void this.restart(slot, signal ?? code);
      });
    });
  }

  private async restart(slot: number, endedWith: string | number): Promise<void> {
    logger(this.name).error({ worker: slot, endedWith }, 'a worker has ended; starting it again');
    for (let attempt = 0; !this.stopping.signal.aborted; attempt++) {
      restarts.inc();
      await delayUntilAborted(backoffMs(attempt, RESTART_BASE_MS, MAX_RESTART_MS), this.stopping.signal);
      if (this.stopping.signal.aborted) return;
      try {
        return await this.launch(slot);
      } catch (error) {
        logger(this.name).error({ err: error, worker: slot }, 'a worker could not start; trying again');
      }
    }
  }

  /** Rejects unless the worker is ready, with its own reasons. */
  private async check(slot: number): Promise<void> {
    const one = this.running.get(slot);
    if (!one) throw new Error('it is starting again');
    const { status, dependencies } = (await one.channel.ask('readiness')) as Readiness;
    if (status === 'ok') return;
    const reasons = Object.entries(dependencies).flatMap(([name, { ok, reason }]) =>
      ok ? [] : [`${name}: ${reason}`],
    );
    throw new Error([status, ...reasons].join(', '));
  }

  /** The sums over all workers (prom-client's `aggregator` of a metric may say otherwise). */
  private async metrics(): Promise<string> {
    const asked = [...this.running.values()].map(async ({ channel }) => (await channel.ask('metrics')) as Metrics);
    const ofWorkers = (await Promise.allSettled(asked)).flatMap((each) =>
      each.status === 'fulfilled' ? [each.value] : [],
    );
    // Of this process only what it counts itself: its CPU and memory are not those of the service.
    const own = (await metrics.getMetricsAsJSON()).filter(({ name }) => name === 'tollgate_worker_restarts_total');
    return AggregatorRegistry.aggregate([...ofWorkers, own]).metrics();
  }
}
