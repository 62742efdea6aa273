import { randomBytes } from 'node:crypto';
import { consumersOf, REQUEST_TOPICS, type Topic } from '@tollgate/contracts';
import { spawnConsumerProcess } from '../consumer-process.fixture';
import type { Messages } from '../messages';
import { SUITE_GROUP, SUITE_TOPICS, TOPIC, type ConsumerProcess, type MessagesStore } from '../messages-store.fixture';
import { applyTopics, withAdmin } from './admin/apply-topics';
import type { KafkaConnection } from './client/connection';
import { listDead, type DeadLetter } from './consume/dead-letters';
import { KafkaMessages, type KafkaMessagesOptions } from './kafka-messages';
import { Publisher } from './publish/publisher';
import { Signatures } from './sign/signatures';
import { TEST_IDENTITY, TEST_KEYS } from './sign/test-identity.fixture';
import type { Topics } from './admin/topic-plan';

/** Settings for the test's Kafka: killed members of a group are missed soon. */
export const TEST_BROKER = { settings: { KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS: '1000' } };

/** No live member is missed on a busy machine. */
const SESSION_TIMEOUT_MS = 10_000;
/** For a member that will be killed: below the brokers' usual minimum, which the test's broker allows. */
const SOON_MISSED = { sessionTimeoutMs: 2_000 };

const ADMIN_TIMEOUT_MS = 20_000;
/**
 * Few, because each test has its own topics: a broker creates their partitions while the first start waits, and a
 * partition takes 5 ms of processor time.
 */
const PARTITIONS = 3;
export const TEST_TOPICS = Object.fromEntries(
  Object.entries(SUITE_TOPICS).map(([topic, definition]) => [
    topic,
    { ...definition, partitions: topic === TOPIC ? PARTITIONS : 1 },
  ]),
) as Topics;
// Its table is no option of `KafkaMessages`.
REQUEST_TOPICS.replies.partitions = PARTITIONS;
/** Messages of one call and key share a record, also on the topic of the suites. */
export const SHARING_TOPICS: Topics = { ...TEST_TOPICS, [TOPIC]: { ...TEST_TOPICS[TOPIC], sharesRecords: true } };

export class CuttableMessages extends KafkaMessages {
  cut(): void {
    this.cutConnections();
  }
}

/** A set of topics of its own in the test's cluster. */
export class KafkaStore implements MessagesStore {
  readonly prefix = `test-${randomBytes(5).toString('hex')}.`;
  readonly connection: KafkaConnection;
  readonly publisher: Publisher;
  private readonly opened: CuttableMessages[] = [];
  private readonly processes: ConsumerProcess[] = [];

  private constructor(
    brokers: readonly string[],
    private readonly topics: Topics,
  ) {
    this.connection = { brokers, clientId: 'test' };
    this.publisher = new Publisher(this.connection);
  }

  static async create(brokers: readonly string[], topics = TEST_TOPICS): Promise<KafkaStore> {
    const store = new KafkaStore(brokers, topics);
    await applyTopics(store.connection, { topics, topicPrefix: store.prefix });
    return store;
  }

  open(more: Partial<KafkaMessagesOptions> = {}): CuttableMessages {
    const messages = new CuttableMessages({ ...this.options(), ...more });
    this.opened.push(messages);
    return messages;
  }

  async spawnConsumer(handled: number): Promise<ConsumerProcess> {
    const argument = {
      transport: 'kafka',
      options: { ...this.options(), identity: undefined, ...SOON_MISSED },
      keys: TEST_KEYS,
      replyPartitions: PARTITIONS,
      group: SUITE_GROUP,
      handled,
    };
    const consumer = await spawnConsumerProcess(argument);
    this.processes.push(consumer);
    return consumer;
  }

  async cut(messages?: Messages): Promise<void> {
    for (const each of this.opened) if (!messages || each === messages) each.cut();
  }

  async publishRaw(topic: Topic, value: unknown): Promise<void> {
    await this.publishBytes(topic, Buffer.from(JSON.stringify(value)));
  }

  /** Puts any bytes into a topic, signed, as a faulty producer or one of another version might. */
  async publishBytes(topic: Topic, value: Buffer | null, key = 'raw'): Promise<void> {
    const { producers } = TEST_TOPICS[topic];
    const message = new Signatures(TEST_IDENTITY).sign(
      this.prefix + topic,
      { key, value },
      producers[0]!,
      consumersOf(TEST_TOPICS[topic]),
    );
    await this.publisher.send({ topic: this.prefix + topic, messages: [message] });
  }

  async dead(topic: Topic, group: string): Promise<{ reason: string; message: unknown }[]> {
    const letters = await this.deadLetters(topic, group);
    return letters.map(({ reason, value }) => ({ reason, message: JSON.parse(value!.toString()) as unknown }));
  }

  async deadLetters(topic: Topic, group: string): Promise<DeadLetter[]> {
    const { letters } = await listDead(this.connection, { topic, topics: TEST_TOPICS, topicPrefix: this.prefix });
    return letters.filter((letter) => letter.group === group);
  }

  /** Closes what it opened, and deletes its topics. */
  async close(): Promise<void> {
    await Promise.all(this.opened.map((messages) => messages.close()));
    await Promise.all(this.processes.map((consumer) => consumer.kill()));
    await this.publisher.close();
    await withAdmin(this.connection, ADMIN_TIMEOUT_MS, async (admin) => {
      const topics = await admin.listTopics();
      await admin.deleteTopics({ topics: topics.filter((topic) => topic.startsWith(this.prefix)) });
    });
  }

  options(): KafkaMessagesOptions {
    const { connection, prefix: topicPrefix, topics } = this;
    return {
      connection,
      identity: TEST_IDENTITY,
      topicPrefix,
      topics,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
    };
  }
}
