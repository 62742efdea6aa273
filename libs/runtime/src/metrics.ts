import { Registry } from 'prom-client';

export { Counter, Gauge, Histogram } from 'prom-client';

/** The process's one Prometheus registry: pass it in `registers` of each metric. Served by the operator API at /metrics. */
export const metrics = new Registry();
