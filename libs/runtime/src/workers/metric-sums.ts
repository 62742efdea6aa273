import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';

export type Metrics = MetricObjectWithValues<MetricValue<string>>[];

/** What only grows. The `type` is the name of it in JSON, whatever prom-client's types say. */
const GROWING = ['counter', 'histogram'];

/**
 * The sums of the metrics of several workers. A counter never goes down, or Prometheus would count all of it again: a
 * worker that does not answer keeps its last values, and the counts of a worker that has ended stay.
 */
export class MetricSums {
  private readonly last = new Map<number, Metrics>();
  /** The metrics of all workers that have ended. */
  private kept: Metrics = [];

  /** A worker's present values. */
  take(worker: number, measured: Metrics): void {
    this.last.set(worker, measured);
  }

  /** A worker has ended. */
  keep(worker: number): void {
    const growing = (this.last.get(worker) ?? []).filter(({ type }) => GROWING.includes(String(type)));
    this.last.delete(worker);
    if (growing.length > 0) this.kept = metricsOf(AggregatorRegistry.aggregate([this.kept, growing]));
  }

  /** The sums, with the metrics of this process. */
  with(own: Metrics): Registry {
    return AggregatorRegistry.aggregate([...this.last.values(), this.kept, own]);
  }
}

/** Sums have their values at once, unlike what a process measures. */
const metricsOf = (sums: Registry) => sums.getMetricsAsArray() as unknown as Metrics;
