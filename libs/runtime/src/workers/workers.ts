import cluster, { type Worker } from 'node:cluster';
import type { Health, Readiness } from '../health/health';
import { logger } from '../logging/logging';
import { Counter, metrics, onlyFrom } from '../metrics/metrics';
import { StartError } from '../process/start-error';
import { stopSignal } from '../process/stop-signal';
import { backoffMs, delayUntilAborted, settlesWithin } from '../timing';
import { allMetrics, gatherMetricsBy } from './as-worker';
import { type Answers, Channel } from './channel';
import { watch } from './heartbeat';
import { MetricSums, type Metrics } from './metric-sums';

/** The pause before a worker is started again. It doubles with each failure in a row of that worker. */
const RESTART_BASE_MS = 200;
const MAX_RESTART_MS = 10_000;
/** A worker that ends after it has served for this long is no failure in a row. */
const PROVEN_MS = 60_000;
/** For what a worker does in its stop besides finishing requests: it publishes usage and closes its connections. */
export const STOP_RESERVE_MS = 20_000;
/** For the end of a worker that was sent SIGKILL. */
const KILLED_TIMEOUT_MS = 5_000;

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
  /** Time from the signal until a worker that still runs is killed: its requests' time and STOP_RESERVE_MS. */
  stopTimeoutMs: number;
  /** What workers may ask this process, besides the metrics of all. */
  answers?: Answers;
  /** Whether this process does a part of the work itself. Then the metrics of all include its own. */
  works?: boolean;
  /** PROVEN_MS, for tests. */
  provenMs?: number;
  /** STANDSTILL_MS of the heartbeat, for tests. */
  standstillMs?: number;
}

/**
 * Runs a program as several processes that share its ports (node:cluster). This process starts a worker again that has
 * died, kills one whose event loop stands still, answers for the readiness and the metrics of all, and stops them.
 */
export class Workers {
  private readonly running = new Map<number, Running>();
  private readonly serving = new Set<Worker>();
  /** By slot: the ends and failed starts since its worker served for a while. */
  private readonly failures = new Map<number, number>();
  /** Settles when the only worker that may open the ports serves or has ended. */
  private opening: Promise<unknown> | undefined;
  private readonly sums = new MetricSums();
  private readonly stopping = new AbortController();

  /** @param name of the program */
  constructor(
    private readonly name: string,
    private readonly count: number,
    private readonly health: Health,
    private readonly options: WorkersOptions,
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
    const told = await this.launchInTurn(1);
    const others = Array.from({ length: this.count - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((slot) => this.launchInTurn(slot)));
    for (const slot of [1, ...others])
      this.health.depend(`worker ${slot}`, { required: true, check: () => this.check(slot) });
    return told;
  }

  /** Stops the workers as a signal does, and resolves when all have ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all([...this.running].map(([slot, { worker }]) => this.end(slot, worker)));
  }

  /** A worker that stands still does not hear SIGTERM. Its requests end as if it had crashed. */
  private async end(slot: number, worker: Worker): Promise<void> {
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    worker.process.kill('SIGTERM');
    const limitMs = this.options.stopTimeoutMs;
    if (await settlesWithin(limitMs, ended)) return;
    logger(this.name).error({ worker: slot, pid: worker.process.pid, limitMs }, 'a worker did not stop; killing it');
    worker.process.kill('SIGKILL');
    await settlesWithin(KILLED_TIMEOUT_MS, ended);
  }

  /**
   * Launches a worker. While none serves, one at a time: two that open a port at once, which another program has taken,
   * would end this process (node:cluster looks for the port's entry again after the first failure has removed it).
   */
  private async launchInTurn(slot: number): Promise<unknown> {
    while (this.serving.size === 0 && this.opening) await this.opening;
    const launched = this.launch(slot);
    if (this.serving.size === 0) {
      const opening = launched.catch(() => undefined).then(() => (this.opening = undefined));
      this.opening = opening;
    }
    return launched;
  }

  /** Resolves when the worker serves. Rejects when it ends before. From then on it is kept running. */
  private async launch(slot: number): Promise<unknown> {
    const stop = this.stopping.signal;
    if (stop.aborted) return undefined;
    const worker = cluster.fork();
    const channel = new Channel(worker, { ...this.options.answers, metrics: allMetrics });
    this.running.set(slot, { worker, channel });
    return new Promise((resolve, reject) => {
      let servesSinceMs = Infinity;
      let endWatch = () => {};
      const serves = (told: unknown) => {
        this.serving.add(worker);
        servesSinceMs = performance.now();
        endWatch = watch(channel, () => this.killStandingStill(slot, worker), this.options.standstillMs);
        resolve(told);
      };
      channel.onServing = serves;
      const ended = (how: string | number) => {
        if (this.running.get(slot)?.worker !== worker) return;
        this.running.delete(slot);
        endWatch();
        this.sums.keep(worker.id);
        const served = this.serving.delete(worker);
        const { provenMs = PROVEN_MS } = this.options;
        if (performance.now() - servesSinceMs >= provenMs) this.failures.delete(slot);
        if (stop.aborted) return resolve(undefined);
        reject(new StartError(`Worker ${slot} could not start: it ended with ${how}.`));
        if (served) void this.restart(slot, how);
      };
      worker.once('exit', (code, signal) => ended(signal ?? code));
      // A connection or an answer that Node itself sends to a worker which has just died, or a process that could not
      // be started. Without a listener it would end this process. Only the latter has no `exit`.
      worker.on('error', (error: NodeJS.ErrnoException) => {
        logger(this.name).warn({ err: error, worker: slot }, 'a worker could not be reached');
        if (worker.process.pid === undefined) ended(error.code ?? error.message);
      });
    });
  }

  /** Its holds have expired. In a stop, the worker has the time of the stop. */
  private killStandingStill(slot: number, worker: Worker): void {
    if (this.stopping.signal.aborted) return;
    logger(this.name).error({ worker: slot, pid: worker.process.pid }, 'a worker stands still; killing it');
    worker.process.kill('SIGKILL');
  }

  private async restart(slot: number, endedWith: string | number): Promise<void> {
    let failed: object = { endedWith };
    let what = 'a worker has ended; starting it again';
    while (!this.stopping.signal.aborted) {
      const before = this.failures.get(slot) ?? 0;
      this.failures.set(slot, before + 1);
      const pauseMs = Math.round(backoffMs(before, RESTART_BASE_MS, MAX_RESTART_MS));
      logger(this.name).error({ ...failed, worker: slot, failuresInARow: before + 1, pauseMs }, what);
      restarts.inc();
      await delayUntilAborted(pauseMs, this.stopping.signal);
      if (this.stopping.signal.aborted) return;
      try {
        await this.launchInTurn(slot);
        return;
      } catch (error) {
        failed = { err: error };
        what = 'a worker could not start; trying again';
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
    await Promise.allSettled(
      [...this.running].map(async ([slot, { worker, channel }]) => {
        const answer = (await channel.ask('metrics')) as Metrics;
        // It may have ended after it answered.
        if (this.running.get(slot)?.worker === worker) this.sums.take(worker.id, answer);
      }),
    );
    const measured = await metrics.getMetricsAsJSON();
    // If this process only keeps the others running, its CPU and memory do not count for the service.
    const own = this.options.works ? measured : measured.filter(({ name }) => name === RESTARTS);
    return this.sums.with(own).metrics();
  }
}
