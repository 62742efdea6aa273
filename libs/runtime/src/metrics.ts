import { collectDefaultMetrics, Registry } from 'prom-client';

export { Counter, Gauge, Histogram } from 'prom-client';

/** The process's one Prometheus registry: pass it in `registers` of each metric. Served at /metrics (health/health-server.ts). */
export const metrics = new Registry();

/** Those of every Node process: CPU, memory, garbage collection, and how late the event loop is. Once a process, by its main program. */
export function measureProcess(): void {
  collectDefaultMetrics({ register: metrics });
}
