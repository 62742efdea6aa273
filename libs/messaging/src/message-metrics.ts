import { Counter, Gauge, Histogram, metrics, onlyFrom, PolledGauge } from '@tollgate/runtime';

const registers = [metrics];
const labelNames = ['topic', 'group'] as const;

export const handledMessages = new Counter({
  name: 'tollgate_messages_handled_total',
  help: 'Messages that the consumer group has handled',
  labelNames,
  registers,
});

export const deadMessages = new Counter({
  name: 'tollgate_messages_dead_total',
  help: 'Quarantined messages: unreadable or forged. An operator must handle each (tollgate dead list)',
  labelNames,
  registers,
});

export const forgedMessages = new Counter({
  name: 'tollgate_messages_forged_total',
  help: 'Messages, requests and replies that were rejected as forged. Alert on each',
  labelNames,
  registers,
});

export const failedBatches = new Counter({
  name: 'tollgate_messages_failed_batches_total',
  help: 'Batches whose handler failed, or that could not be decoded; they are redelivered',
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
  help: 'Outbox rows that can never be published. An operator must handle each',
  labelNames: ['outbox'],
  registers,
});

export const expiredRequests = new Counter({
  name: 'tollgate_requests_expired_total',
  help: 'Requests between services that arrived after their deadline and were not handled',
  labelNames: ['service'],
  registers,
});

export const unreadableRequests = new Counter({
  name: 'tollgate_requests_unreadable_total',
  help: 'Unreadable requests and replies between services. They are logged with their offset and not kept',
  labelNames: ['topic'],
  registers,
});

export const outboxAge = new Gauge({
  name: 'tollgate_outbox_oldest_seconds',
  help: 'Age of the oldest outbox row that this process could not publish yet; 0 if there is none',
  labelNames: ['outbox'],
  registers,
});

export const waitingMessages = new PolledGauge({
  name: 'tollgate_messages_waiting',
  help: 'Messages (on Kafka: records) that the consumer group has not handled yet, over all partitions',
  labelNames,
});

// Auth consumes no topic. The gateway has no outbox and answers no requests.
onlyFrom(
  ['gateway', 'metering', 'billing'],
  'tollgate_messages_waiting',
  'tollgate_messages_age_seconds',
  'tollgate_messages_handled_total',
  'tollgate_messages_failed_batches_total',
  'tollgate_messages_dead_total',
);
onlyFrom(
  ['auth', 'metering', 'billing'],
  'tollgate_outbox_oldest_seconds',
  'tollgate_outbox_refused_total',
  'tollgate_requests_expired_total',
);
