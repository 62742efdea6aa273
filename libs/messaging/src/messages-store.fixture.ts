import { TOPICS, type BalanceUpdate, type Topic, type TopicDefinition } from '@tollgate/contracts';
import type { Messages } from './messages';

/** A consumer in its own process. `batches`: the versions of each call of its handler. */
export interface ConsumerProcess {
  batches: string[][];
  /** kill -9. */
  kill(): Promise<void>;
}

/**
 * A new store (a schema, or a cluster's set of topics) that independent instances share as separate processes would.
 */
export interface MessagesStore {
  /** A new instance, not started. The suite closes it. */
  open(): Messages;
  /**
   * Starts another process that consumes `credit-news` as `SUITE_GROUP`. Its handler returns for the first `handled`
   * messages and then never again.
   */
  spawnConsumer(handled: number): Promise<ConsumerProcess>;
  /**
   * Breaks all connections of one instance, or of all, like a network fault or a restart of the server. New connections
   * are possible.
   */
  cut(messages?: Messages): Promise<void>;
  /** Puts a value that is not an envelope where a consumer of the topic finds it. */
  publishRaw(topic: Topic, value: unknown): Promise<void>;
  /** The quarantined messages of the group. */
  dead(topic: Topic, group: string): Promise<{ reason: string; message: unknown }[]>;
  close(): Promise<void>;
}

export const SUITE_GROUP = 'admission';
export const SECOND_GROUP = 'audit';
/** The real topics, with a second group on one of them. */
export const SUITE_TOPICS: Record<Topic, TopicDefinition> = {
  ...TOPICS,
  'credit-news': { ...TOPICS['credit-news'], groups: { [SUITE_GROUP]: 'gateway', [SECOND_GROUP]: 'gateway' } },
};
export const TOPIC = 'credit-news';

/** A message of key `tenantId`. The suite counts `version` up for each key. */
export const balanceUpdate = (tenantId: string, version: number): BalanceUpdate => ({
  tenantId,
  version: String(version),
  balanceNanos: '0',
  releases: [],
  suspended: false,
});

/** Collects what handlers got, and checks it against the guarantees. */
export class Received {
  readonly batches: BalanceUpdate[][] = [];

  handler = async (messages: readonly BalanceUpdate[]): Promise<void> => {
    this.batches.push([...messages]);
  };

  get messages(): BalanceUpdate[] {
    return this.batches.flat();
  }

  /**
   * Every version from 1 to `count` of each key has arrived. Repeats are allowed. The first deliveries must be in
   * order.
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

/** A new store for each test of the calling `describe`, with instances that are closed after the test. */
export function useInstances<Store extends Pick<MessagesStore, 'open' | 'close'>>(createStore: () => Promise<Store>) {
  let store: Store;
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
  /** A started instance, which consumes for the group if there is a handler. */
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
