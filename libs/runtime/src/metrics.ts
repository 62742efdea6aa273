import type { Service } from '@tollgate/contracts';
import { collectDefaultMetrics, Registry } from 'prom-client';

export { Counter, Gauge, Histogram } from 'prom-client';

/**
 * The process's one Prometheus registry: pass it in `registers` of each metric. Served at /metrics
 * (health/health-server.ts).
 */
export const metrics = new Registry();

/**
 * Those of every Node process: CPU, memory, garbage collection, and how late the event loop is. Once a process, by its
 * main program.
 */
export function measureProcess(): void {
  collectDefaultMetrics({ register: metrics });
}

const givenBy = new Map<string, readonly Service[]>();

/** Says which services set metrics that a library registers in the others too. For docs/operating/metrics.md. */
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
  // What prom-client's metrics have, and its types leave out.
  const registered = metrics.getMetricsAsArray() as unknown as (DescribedMetric & { labelNames: readonly string[] })[];
  return registered.map(({ name, type, labelNames, help }) => {
    const services = givenBy.get(name);
    return { name, type, labels: labelNames, help, ...(services && { services }) };
  });
}
