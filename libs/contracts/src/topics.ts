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

/** How a broker stores a topic. A transport without a broker ignores it. */
export interface TopicStorage {
  /** The maximum number of consumers that share the work of a group. May grow, but never shrinks. */
  partitions: number;
  /**
   * How long a message is kept, handled or not: longer than the longest outage of a consumer. Compacted topics keep it
   * forever.
   */
  retentionMs: number;
  /** Keeps the last message of each key forever, instead of all messages for a time. */
  compacted: boolean;
}

export interface TopicDefinition extends TopicStorage {
  /** The property that orders messages: messages with the same key are handled in the order of their publication. */
  key: 'tenantId';
  /** The version of the message form. A consumer quarantines a message that it cannot read. */
  schemaVersion: number;
  /**
   * On a broker, messages of one publication with the same key share a record. It saves most of the cost of a message
   * where calls carry many of a key. Only for a topic that one service consumes: it signs what it quarantines from a
   * shared record for itself.
   */
  sharesRecords: boolean;
  /** The services that may publish it. A message of any other service counts as forged. */
  producers: readonly Service[];
  /**
   * The consumer groups, each with the service that consumes as it. Every group gets every message, which is kept until
   * the group has handled it.
   */
  groups: Readonly<Record<string, Service>>;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const TABLE = {
  'usage-events': {
    key: 'tenantId',
    schemaVersion: 1,
    sharesRecords: true,
    // Metering publishes in its sweep what gateways could not.
    producers: ['gateway', 'metering'],
    groups: { metering: 'metering' },
    partitions: 12,
    retentionMs: 30 * DAY_MS,
    compacted: false,
  },
  charges: {
    key: 'tenantId',
    schemaVersion: 1,
    sharesRecords: true,
    producers: ['metering'],
    groups: { billing: 'billing' },
    partitions: 12,
    retentionMs: 30 * DAY_MS,
    compacted: false,
  },
  'credit-news': {
    key: 'tenantId',
    schemaVersion: 1,
    // Billing publishes a tenant's updates of a batch as one message.
    sharesRecords: false,
    producers: ['billing'],
    groups: { admission: 'gateway' },
    partitions: 12,
    retentionMs: 7 * DAY_MS,
    compacted: false,
  },
  'tenant-news': {
    key: 'tenantId',
    schemaVersion: 1,
    sharesRecords: false,
    producers: ['auth'],
    groups: { billing: 'billing' },
    partitions: 3,
    retentionMs: 30 * DAY_MS,
    compacted: false,
  },
  // For notifications, which are not built yet. A transport without a broker keeps no message without a group.
  // Billing also has each event in its own books.
  'budget-events': {
    key: 'tenantId',
    schemaVersion: 1,
    sharesRecords: false,
    producers: ['billing'],
    groups: {},
    partitions: 3,
    retentionMs: 90 * DAY_MS,
    compacted: false,
  },
} as const satisfies Record<Topic, TopicDefinition>;

/**
 * The only table of topics. A new topic starts here: CONTRIBUTING.md. On a broker, `tollgate topics apply` creates the
 * topics of the table.
 */
export const TOPICS: Record<Topic, TopicDefinition> = TABLE;

/** The consumer groups of a topic. */
export type GroupOf<T extends Topic> = keyof (typeof TABLE)[T]['groups'] & string;

/** The first word of a subject: the service that answers it. */
export type RequestService = Subject extends `${infer Service}.${string}` ? Service : never;
export type RequestTopic = `requests.${RequestService}` | 'replies';

const REQUESTS = { partitions: 6, retentionMs: 10 * MINUTE_MS, compacted: false };

/**
 * Request–reply over a broker: a topic for each answering service, and one for all replies. A requesting replica
 * reads one partition of `replies`. Two may share one, because each takes only its own replies.
 */
export const REQUEST_TOPICS: Record<RequestTopic, TopicStorage> = {
  'requests.auth': REQUESTS,
  'requests.metering': REQUESTS,
  'requests.billing': REQUESTS,
  'requests.console': REQUESTS,
  replies: { ...REQUESTS, partitions: 32 },
};

/** The dead topic of each topic (`<topic>.dead`), which keeps quarantined messages until an operator acts. */
export const DEAD_TOPIC: TopicStorage = { partitions: 1, retentionMs: 0, compacted: true };

/** The envelope of a message. `data` is the topic's type in the given version. */
export interface Envelope<T = unknown> {
  /** `msg_…`, only for tracing. De-duplication uses the ids inside `data`. */
  id: string;
  v: number;
  at: string;
  data: T;
}
