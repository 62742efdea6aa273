import type { Charge, CreditNews, UsageEvent } from './events';

/** The message type of each topic. */
export interface TopicTypes {
  'usage-events': UsageEvent;
  charges: Charge;
  'credit-news': CreditNews;
}

export type Topic = keyof TopicTypes;

export interface TopicDefinition {
  /** The property that orders messages: those with the same key are handled in the order in which they were published. */
  key: 'tenantId';
  /** Version of the message form; a consumer sets aside what it cannot read. */
  schemaVersion: number;
  /** Every consumer group must be named here: a message is kept for each of them until that group has handled it. */
  groups: readonly string[];
}

/** The one table of topics. A new topic starts here: CONTRIBUTING.md. */
export const TOPICS: Record<Topic, TopicDefinition> = {
  'usage-events': { key: 'tenantId', schemaVersion: 1, groups: ['metering'] },
  charges: { key: 'tenantId', schemaVersion: 1, groups: ['billing'] },
  'credit-news': { key: 'tenantId', schemaVersion: 1, groups: ['admission'] },
};

/** What a message travels in. `data` is the topic's type in the version named. */
export interface Envelope<T = unknown> {
  /** `msg_…`; for tracing only: de-duplication goes by the ids inside `data`. */
  id: string;
  v: number;
  at: string;
  data: T;
}
