import { Counter, metrics, PolledGauge } from '@tollgate/runtime';

const events = new Counter({
  name: 'tollgate_metering_events_total',
  help: 'Usage events taken in, by what became of them',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const refused = new Counter({
  name: 'tollgate_metering_refused_events_total',
  help: 'Usage events set aside, by what was wrong with them: their form, a price that was never in force, or a cost that tokens and price do not give',
  labelNames: ['wrong'] as const,
  registers: [metrics],
});

/** Of all replicas: asked of the table. */
export const openEvents = new PolledGauge({
  name: 'tollgate_metering_open_refused_events',
  help: 'Usage events that are set aside and wait for their price to be known, or for a person',
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

/** Once it is set aside. */
export function countRefused(wrong: Wrong): void {
  refused.inc({ wrong });
}
