import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import type { Health, Readiness } from '../health/health';
import { logger } from '../logging';
import { Counter, metrics, onlyFrom } from '../metrics';
import { StartError } from '../process/start-error';
import { stopSignal } from '../process/stop-signal';
import { backoffMs, delayUntilAborted } from '../timing';
import { allMetrics, gatherMetricsBy } from './as-worker';
import { type Answers, Channel } from './channel';

const RESTART_BASE_MS = 200;
const MAX_RESTART_MS = 10_000;

type Metrics = MetricObjectWithValues<MetricValue<string>>[];

const RESTARTS = 'tollgate_worker_restarts_total';
const restarts = new Counter({
  name: RESTARTS,
  help: 'Workers (TOLLGATE_WORKERS) that ended without being stopped, and were started again',
  registers: [metrics],
});
onlyFrom(['gateway'], RESTARTS);

interface Running {
  worker: Worker;
  channel: Channel;
}

export interface WorkersOptions {
  /** What workers may ask this process, besides the metrics of all. */
  answers?: Answers;
  /** Whether this process does a part of the work itself. Then its own metrics are among those of all. */
  works?: boolean;
}

/**
 * Runs a program as several processes that share its ports (node:cluster). This process starts a worker again that has
 * died, answers for the readiness and the metrics of all, and stops them.
 */
export class Workers {
  private readonly running = new Map<number, Running>();
  private readonly stopping = new AbortController();

  /** @param name of the program */
  constructor(
    private readonly name: string,
    private readonly count: number,
    private readonly health: Health,
    private readonly options: WorkersOptions = {},
  ) {
    gatherMetricsBy(() => this.metrics());
    // Ctrl-C reaches the workers by itself. They must not be started again, whatever is stopped before `stop`.
    void stopSignal().then(() => this.stopping.abort());
  }

  /**
   * Resolves when all workers serve, to what the first one told. Rejects with StartError when one cannot start: its own
   * line says why. The first worker starts alone, so that a wrong setting is reported once. After a signal no worker is
   * started, and those that end meanwhile are no failure. Undefined if there was no first worker then.
   */
  async start(): Promise<unknown> {
    const told = await this.launch(1);
    const others = Array.from({ length: this.count - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((slot) => this.launch(slot)));
    for (const slot of [1, ...others])
      this.health.depend(`worker ${slot}`, { required: true, check: () => this.check(slot) });
    return told;
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
  private async launch(slot: number): Promise<unknown> {
    const stop = this.stopping.signal;
    if (stop.aborted) return undefined;
    const worker = cluster.fork();
    const channel = new Channel(worker, { ...this.options.answers, metrics: allMetrics });
    this.running.set(slot, { worker, channel });
    return new Promise((resolve, reject) => {
      let serves = false;
      const served = (told: unknown) => {
        serves = true;
        resolve(told);
      };
      channel.onServing = served;
      worker.once('exit', (code, signal) => {
        this.running.delete(slot);
        if (stop.aborted) return resolve(undefined);
        reject(new StartError(`Worker ${slot} could not start: it ended with ${signal ?? code}.`));
        if (serves) void this.restart(slot, signal ?? code);
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
        await this.launch(slot);
        return;
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
    const measured = await metrics.getMetricsAsJSON();
    // Of a process that only keeps the others running, its CPU and memory are not those of the service.
    const own = this.options.works ? measured : measured.filter(({ name }) => name === RESTARTS);
    return AggregatorRegistry.aggregate([...ofWorkers, own]).metrics();
  }
}
