import { Counter, metrics, PolledGauge } from '@tollgate/runtime';

const events = new Counter({
  name: 'tollgate_metering_events_total',
  help: 'Usage events received, by result: recorded, repeated, rejected',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const charged = new Counter({
  name: 'tollgate_metering_charged_nanos_total',
  help: 'Cost of the usage events that were recorded, in nanos of the currency unit',
  registers: [metrics],
});

const refused = new Counter({
  name: 'tollgate_metering_refused_events_total',
  help: 'Quarantined usage events, including repeats, by fault: form, price (never in force), cost',
  labelNames: ['wrong'] as const,
  registers: [metrics],
});

const late = new Counter({
  name: 'tollgate_metering_late_events_total',
  help: 'Usage events of retired months that are not recorded there: repeats, or usage that was never recorded',
  registers: [metrics],
});

/** Call it once the batch is committed. */
export function countLate(count: number): void {
  late.inc(count);
}

/** Counted in the table, so for all replicas. */
export const openEvents = new PolledGauge({
  name: 'tollgate_metering_open_refused_events',
  help: 'Quarantined usage events that wait for their price or for a person; at most 10,000',
});

/** The results of a batch. Every message counts in exactly one of the first three. */
export interface BatchResult {
  recorded: number;
  /** Recorded before, or repeated in this batch. */
  repeated: number;
  rejected: number;
}

export type Wrong = 'form' | 'price' | 'cost';

/**
 * Call it once the batch is committed.
 * @param chargedNanos the cost of what was recorded
 */
export function countBatch({ recorded, repeated, rejected }: BatchResult, chargedNanos: bigint): void {
  events.inc({ result: 'recorded' }, recorded);
  events.inc({ result: 'repeated' }, repeated);
  events.inc({ result: 'rejected' }, rejected);
  charged.inc(Number(chargedNanos));
}

/** Call it once the events are quarantined. */
export function countRefused(wrong: Wrong): void {
  refused.inc({ wrong });
}
