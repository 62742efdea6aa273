import { Counter, metrics } from '@tollgate/runtime';

const events = new Counter({
  name: 'tollgate_metering_events_total',
  help: 'Usage events taken in, by what became of them',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const disagreements = new Counter({
  name: 'tollgate_metering_disagreements_total',
  help: 'Recorded events whose settled cost is not the rated cost',
  registers: [metrics],
});

/** What became of a batch: every message is in exactly one of the first three. */
export interface BatchResult {
  recorded: number;
  /** Recorded before, or twice in this batch. */
  repeated: number;
  rejected: number;
  /** Of the recorded: the gateway settled something else than the rated cost. */
  disagreements: number;
}

/** Once the batch is committed. */
export function countBatch({ recorded, repeated, rejected, disagreements: disagreeing }: BatchResult): void {
  events.inc({ result: 'recorded' }, recorded);
  events.inc({ result: 'repeated' }, repeated);
  events.inc({ result: 'rejected' }, rejected);
  disagreements.inc(disagreeing);
}
