import { Counter, Gauge, Histogram, metrics } from '@tollgate/runtime';

/** What the gauges show of a backend. */
export interface BackendState {
  name: string;
  inFlight: number;
  openBreakers: number;
  silentModels: number;
  drained: boolean;
  healthy: boolean;
}

const registers = [metrics];

const calls = new Counter({
  name: 'tollgate_backend_calls_total',
  help: 'Ended calls of a backend, by result: succeeded, failed, unreachable (no connection)',
  labelNames: ['model', 'backend', 'result'] as const,
  registers,
});

const firstBytes = new Histogram({
  name: 'tollgate_backend_first_byte_seconds',
  help: 'Time from the sending of a request to the first byte of the answer of a backend',
  labelNames: ['model', 'backend'] as const,
  buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  registers,
});

const durations = new Histogram({
  name: 'tollgate_backend_call_duration_seconds',
  help: 'Time from the sending of a request to the end of the answer of a backend, whatever its result',
  labelNames: ['model', 'backend'] as const,
  buckets: [0.05, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  registers,
});

/** Observes the times of one model at one backend. The series are looked up once. */
export class BackendTimes {
  private readonly firstByte: Histogram.Internal<'model' | 'backend'>;
  private readonly duration: Histogram.Internal<'model' | 'backend'>;

  constructor(model: string, backend: string) {
    this.firstByte = firstBytes.labels(model, backend);
    this.duration = durations.labels(model, backend);
  }

  began(ms: number): void {
    this.firstByte.observe(ms / 1_000);
  }

  ended(ms: number): void {
    this.duration.observe(ms / 1_000);
  }
}

new Gauge({
  name: 'tollgate_backend_calls_in_flight',
  help: 'Calls of a backend in progress, over all models',
  labelNames: ['backend'] as const,
  registers,
  collect() {
    this.reset();
    for (const { name, inFlight: now } of watched()) this.set({ backend: name }, now);
  },
});

new Gauge({
  name: 'tollgate_backend_open_breakers',
  help: 'Models for which the circuit breaker of a backend that may get calls is open: it gets hardly any',
  labelNames: ['backend'] as const,
  registers,
  collect() {
    this.reset();
    for (const { name, openBreakers } of watched()) this.set({ backend: name }, openBreakers);
  },
});

new Gauge({
  name: 'tollgate_backend_silent_models',
  help: 'Models for which the last five clients of a backend left before it began to answer: it is called last',
  labelNames: ['backend'] as const,
  registers,
  collect() {
    this.reset();
    for (const { name, silentModels } of watched()) this.set({ backend: name }, silentModels);
  },
});

new Gauge({
  name: 'tollgate_backend_drained',
  help: '1: an operator drained the backend; it gets no new calls',
  labelNames: ['backend'] as const,
  aggregator: 'max',
  registers,
  collect() {
    this.reset();
    for (const { name, drained } of watched()) this.set({ backend: name }, Number(drained));
  },
});

new Gauge({
  name: 'tollgate_backend_healthy',
  help: '1: the health checks of the backend succeed, or it has none. 0: one fails, so it is called only as a last resort',
  labelNames: ['backend'] as const,
  aggregator: 'min',
  registers,
  collect() {
    this.reset();
    for (const { name, healthy } of watched()) this.set({ backend: name }, Number(healthy));
  },
});

export const queued = new Gauge({
  name: 'tollgate_backend_queue_length',
  help: 'Requests that wait for a place, as all backends of their model are at maxConcurrency',
  labelNames: ['model'] as const,
  registers,
});

export const retries = new Counter({
  name: 'tollgate_backend_retries_total',
  help: 'Further attempts of a request at another backend, by result: made, over_budget',
  labelNames: ['model', 'result'] as const,
  registers,
});

export const fallbacks = new Counter({
  name: 'tollgate_model_fallbacks_total',
  help: 'Requests that another model was asked for, as no backend of their own could serve',
  labelNames: ['model', 'fallback'] as const,
  registers,
});

/** The series of each model, backend and result. They are looked up once, so that a call creates no labels. */
const series = new Map<string, Map<string, Map<string, Counter.Internal>>>();

export function noteResult(model: string, backend: string, result: string): void {
  let ofModel = series.get(model);
  if (!ofModel) series.set(model, (ofModel = new Map<string, Map<string, Counter.Internal>>()));
  let ofBackend = ofModel.get(backend);
  if (!ofBackend) ofModel.set(backend, (ofBackend = new Map<string, Counter.Internal>()));
  let one = ofBackend.get(result);
  if (!one) ofBackend.set(result, (one = calls.labels(model, backend, result)));
  one.inc();
}

let watched: () => Iterable<BackendState> = () => [];

/** The backends that the gauges show. */
export function showBackends(all: () => Iterable<BackendState>): void {
  watched = all;
}
