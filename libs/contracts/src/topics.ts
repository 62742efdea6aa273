import type { BudgetEvent, Charge, BalanceUpdate, TenantUpdate, UsageEvent } from './events';
import type { Service } from './services';
import type { Subject } from './subjects';

/** The message type of each topic. */
export interface TopicTypes {
  'usage-events': UsageEvent;
  charges: Charge;
  'credit-news': BalanceUpdate;
  'tenant-news': TenantUpdate;
  'budget-events': BudgetEvent;
}

export type Topic = keyof TopicTypes;

/** How a broker keeps a topic; a transport without a broker ignores it. */
export interface TopicStorage {
  /** The most consumers that can share the work of a group. May grow; never shrinks. */
  partitions: number;
  /**
   * How long a message is kept, handled or not: longer than the longest outage of a consumer. Compacted topics keep it
   * for ever.
   */
  retentionMs: number;
  /** Keeps the last message of each key, for ever, and not all messages for a time. */
  compacted: boolean;
}

export interface TopicDefinition extends TopicStorage {
  /**
   * The property that orders messages: those with the same key are handled in the order in which they were published.
   */
  key: 'tenantId';
  /** Version of the message form; a consumer quarantines what it cannot read. */
  schemaVersion: number;
  /** Who may publish it; from anybody else a message is not believed. */
  producers: readonly Service[];
  /**
   * Every consumer group, and the service that consumes as it: a message is kept for each of them until that group has
   * handled it.
   */
  groups: Readonly<Record<string, Service>>;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/**
 * The one table of topics. A new topic starts here: CONTRIBUTING.md. Where there is a broker, `tollgate topics apply`
 * creates what the tables say.
 */
export const TOPICS: Record<Topic, TopicDefinition> = {
  'usage-events': {
    key: 'tenantId',
    schemaVersion: 1,
    // The sweep of metering publishes what gateways could not.
    producers: ['gateway', 'metering'],
    groups: { metering: 'metering' },
    partitions: 12,
    retentionMs: 30 * DAY_MS,
    compacted: false,
  },
  charges: {
    key: 'tenantId',
    schemaVersion: 1,
    producers: ['metering'],
    groups: { billing: 'billing' },
    partitions: 12,
    retentionMs: 30 * DAY_MS,
    compacted: false,
  },
  'credit-news': {
    key: 'tenantId',
    schemaVersion: 1,
    producers: ['billing'],
    groups: { admission: 'gateway' },
    partitions: 12,
    retentionMs: 7 * DAY_MS,
    compacted: false,
  },
  'tenant-news': {
    key: 'tenantId',
    schemaVersion: 1,
    producers: ['auth'],
    groups: { billing: 'billing' },
    partitions: 3,
    retentionMs: 30 * DAY_MS,
    compacted: false,
  },
  // For notifications, which are not built yet: without a group a transport without a broker keeps nothing of it.
  // billing has each event in its own books too.
  'budget-events': {
    key: 'tenantId',
    schemaVersion: 1,
    producers: ['billing'],
    groups: {},
    partitions: 3,
    retentionMs: 90 * DAY_MS,
    compacted: false,
  },
};

/** The first word of a subject: the service that answers it. */
export type RequestService = Subject extends `${infer Service}.${string}` ? Service : never;
export type RequestTopic = `requests.${RequestService}` | 'replies';

const REQUESTS = { partitions: 6, retentionMs: 10 * MINUTE_MS, compacted: false };

/**
 * Request–reply over a broker: a topic for each service that answers, one for all replies. A replica that asks has a
 * partition of `replies`; two may share one, as each takes its own replies only.
 */
export const REQUEST_TOPICS: Record<RequestTopic, TopicStorage> = {
  'requests.auth': REQUESTS,
  'requests.metering': REQUESTS,
  'requests.billing': REQUESTS,
  replies: { ...REQUESTS, partitions: 32 },
};

/** What each topic's unreadable messages are quarantined in (`<topic>.dead`): until an operator acts. */
export const DEAD_TOPIC: TopicStorage = { partitions: 1, retentionMs: 0, compacted: true };

/** What a message travels in. `data` is the topic's type in the version named. */
export interface Envelope<T = unknown> {
  /** `msg_…`; for tracing only: de-duplication goes by the ids inside `data`. */
  id: string;
  v: number;
  at: string;
  data: T;
}
