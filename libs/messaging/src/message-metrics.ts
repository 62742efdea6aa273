import { Counter, Gauge, Histogram, metrics, PolledGauge } from '@tollgate/runtime';

const registers = [metrics];
const labelNames = ['topic', 'group'] as const;

export const handledMessages = new Counter({
  name: 'tollgate_messages_handled_total',
  help: 'Messages that a consumer group has handled',
  labelNames,
  registers,
});

export const deadMessages = new Counter({
  name: 'tollgate_messages_dead_total',
  help: 'Messages set aside because they could not be read; each one needs an operator',
  labelNames,
  registers,
});

export const forgedMessages = new Counter({
  name: 'tollgate_messages_forged_total',
  help: "Messages, requests and replies that were not believed: unsigned, altered, or not their sender's to say. None of them had an effect",
  labelNames,
  registers,
});

export const failedBatches = new Counter({
  name: 'tollgate_messages_failed_batches_total',
  help: 'Batches whose handler threw; they come again',
  labelNames,
  registers,
});

export const messageAge = new Histogram({
  name: 'tollgate_messages_age_seconds',
  help: 'Age of the oldest message of a batch when its handler is called',
  labelNames,
  buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
  registers,
});

export const refusedRows = new Counter({
  name: 'tollgate_outbox_refused_total',
  help: 'Outbox rows set aside because they can never be published; each one needs an operator',
  labelNames: ['outbox'],
  registers,
});

export const expiredRequests = new Counter({
  name: 'tollgate_requests_expired_total',
  help: 'Requests that reached their service past their deadline and were not handled',
  labelNames: ['service'],
  registers,
});

export const unreadableRequests = new Counter({
  name: 'tollgate_requests_unreadable_total',
  help: 'Requests and replies between services that could not be read; nothing is set aside, as nobody waits for them later',
  labelNames: ['topic'],
  registers,
});

export const outboxAge = new Gauge({
  name: 'tollgate_outbox_oldest_seconds',
  help: 'Age of the oldest outbox row that this process could not publish yet; 0 when there is none',
  labelNames: ['outbox'],
  registers,
});

export const waitingMessages = new PolledGauge({
  name: 'tollgate_messages_waiting',
  help: 'Messages that the group has not handled yet, over all partitions: the same in every process that consumes for it',
  labelNames,
});
