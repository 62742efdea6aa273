import { Counter, metrics, PolledGauge } from '@tollgate/runtime';

const events = new Counter({
  name: 'tollgate_metering_events_total',
  help: 'Usage events received, by result: recorded, repeated, rejected',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const refused = new Counter({
  name: 'tollgate_metering_refused_events_total',
  help: 'Quarantined usage events, repeats included, by what is wrong: form, price (never in force), cost',
  labelNames: ['wrong'] as const,
  registers: [metrics],
});

/** Of all replicas: asked of the table. */
export const openEvents = new PolledGauge({
  name: 'tollgate_metering_open_refused_events',
  help: 'Quarantined usage events that wait for their price or for a person; 10,000 at most',
});

/** What became of a batch: every message is in exactly one of the first three. */
export interface BatchResult {
  recorded: number;
  /** Recorded before, or twice in this batch. */
  repeated: number;
  rejected: number;
}

export type Wrong = 'form' | 'price' | 'cost';

/** Once the batch is committed. */
export function countBatch({ recorded, repeated, rejected }: BatchResult): void {
  events.inc({ result: 'recorded' }, recorded);
  events.inc({ result: 'repeated' }, repeated);
  events.inc({ result: 'rejected' }, rejected);
}

/** Once it is quarantined. */
export function countRefused(wrong: Wrong): void {
  refused.inc({ wrong });
}
