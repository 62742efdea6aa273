import { TOPICS, type BalanceUpdate, type Topic, type TopicDefinition } from '@tollgate/contracts';
import type { Messages } from './messages';

/** A consumer in a real process of its own; `batches` are the versions that its handler was called with, per call. */
export interface ConsumerProcess {
  batches: string[][];
  /** kill -9. */
  kill(): Promise<void>;
}

/**
 * A fresh store (a schema, a cluster's set of topics) on which independent instances meet as separate processes would.
 */
export interface MessagesStore {
  /** A new instance, not started. The suite closes it. */
  open(): Messages;
  /**
   * Starts another process that consumes `credit-news` as `SUITE_GROUP` and whose handler returns for the first
   * `handled` messages and then hangs for ever.
   */
  spawnConsumer(handled: number): Promise<ConsumerProcess>;
  /**
   * Cuts all connections of one instance, or of all, as a network fault or a restart of the server does; they may come
   * back.
   */
  cut(messages?: Messages): Promise<void>;
  /** Puts a value, which is no envelope of ours, where a consumer of the topic finds it. */
  publishRaw(topic: Topic, value: unknown): Promise<void>;
  /** What was quarantined for the group. */
  dead(topic: Topic, group: string): Promise<{ reason: string; message: unknown }[]>;
  close(): Promise<void>;
}

/** Until what failed is tried again, and then some: the waits between tries grow to 5 s. */
export const AFTER_FAILURES_MS = 15_000;
export const SUITE_GROUP = 'admission';
export const SECOND_GROUP = 'audit';
/** The real topics, with a second group on one of them. */
export const SUITE_TOPICS: Record<Topic, TopicDefinition> = {
  ...TOPICS,
  'credit-news': { ...TOPICS['credit-news'], groups: { [SUITE_GROUP]: 'gateway', [SECOND_GROUP]: 'gateway' } },
};
export const TOPIC = 'credit-news';

/** A message of key `tenantId`; the suite counts `version` up per key. */
export const balanceUpdate = (tenantId: string, version: number): BalanceUpdate => ({
  tenantId,
  version: String(version),
  balanceNanos: '0',
  releases: [],
  suspended: false,
});

/** Collects what handlers got, and knows what the guarantees say about it. */
export class Received {
  readonly batches: BalanceUpdate[][] = [];

  handler = async (messages: readonly BalanceUpdate[]): Promise<void> => {
    this.batches.push([...messages]);
  };

  get messages(): BalanceUpdate[] {
    return this.batches.flat();
  }

  /**
   * Every version from 1 to `count` of each key has come. Repeats are allowed; a first appearance out of order is not.
   */
  assertAllInOrder(tenants: string[], count: number): void {
    const last = new Map<string, number>();
    for (const { tenantId, version } of this.messages) {
      const seen = last.get(tenantId) ?? 0;
      if (Number(version) > seen + 1) throw new Error(`${tenantId}: ${version} came after ${seen}`);
      last.set(tenantId, Math.max(seen, Number(version)));
    }
    for (const tenant of tenants) {
      if (last.get(tenant) !== count) throw new Error(`${tenant}: ${last.get(tenant) ?? 0} of ${count} have come`);
    }
  }
}

/** A fresh store for each test of the calling `describe`, and instances on it, which are closed after it. */
export function useInstances(createStore: () => Promise<MessagesStore>) {
  let store: MessagesStore;
  let opened: Messages[];
  beforeEach(async () => {
    store = await createStore();
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((messages) => messages.close()));
    await store.close();
  });
  /** A new instance, not started. */
  function open(): Messages {
    const messages = store.open();
    opened.push(messages);
    return messages;
  }
  /** One that is started, and consumes for the group where there is a handler. */
  async function start(handler?: (messages: readonly BalanceUpdate[]) => Promise<void>, group = SUITE_GROUP) {
    const messages = open();
    if (handler) messages.consume(TOPIC, group, handler);
    await messages.start();
    return messages;
  }
  return {
    open,
    start,
    get store() {
      return store;
    },
  };
}
