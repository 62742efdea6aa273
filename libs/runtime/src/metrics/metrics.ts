import type { Service } from '@tollgate/contracts';
import { collectDefaultMetrics, Registry } from 'prom-client';

export { Counter, Gauge, Histogram } from 'prom-client';

/**
 * The process's only Prometheus registry: pass it in `registers` of each metric. Served at /metrics
 * (health/health-server.ts).
 */
export const metrics = new Registry();

/**
 * The metrics of every Node process: CPU, memory, garbage collection, and event loop delay. Called once by the main
 * program.
 */
export function measureProcess(): void {
  collectDefaultMetrics({ register: metrics });
}

const givenBy = new Map<string, readonly Service[]>();

/** Names the services that set a metric which a library also registers in others. For docs/operating/metrics.md. */
export function onlyFrom(services: readonly Service[], ...names: readonly string[]): void {
  for (const name of names) givenBy.set(name, services);
}

/** A row of the table in docs/operating/metrics.md. */
export interface DescribedMetric {
  name: string;
  type: string;
  labels: readonly string[];
  help: string;
  /** Absent: every process that has registered it. */
  services?: readonly Service[];
}

/** The metrics that this process has registered. */
export function describeMetrics(): DescribedMetric[] {
  // Fields of prom-client's metrics that its types omit.
  const registered = metrics.getMetricsAsArray() as unknown as (DescribedMetric & { labelNames: readonly string[] })[];
  return registered.map(({ name, type, labelNames, help }) => {
    const services = givenBy.get(name);
    return { name, type, labels: labelNames, help, ...(services && { services }) };
  });
}
