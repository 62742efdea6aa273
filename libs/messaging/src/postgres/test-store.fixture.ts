import type { Service } from '@tollgate/contracts';
import type { TestDatabase } from '@tollgate/testing';
import type { Messages } from '../messages';
import { SUITE_GROUP, SUITE_TOPICS, type ConsumerProcess, type MessagesStore } from '../messages-store.fixture';
import { spawnConsumerProcess } from '../consumer-process.fixture';
import { PostgresMessages, type PostgresMessagesOptions } from './postgres-messages';

let stores = 0;

/** Schemas of its own in the test's database. */
export class PostgresStore implements MessagesStore {
  readonly schema = `messages_${++stores}`;
  /** Where the former version keeps its messages. */
  readonly formerSchema = `former_${stores}`;
  private readonly names = new Map<Messages, string>();
  private readonly processes: ConsumerProcess[] = [];

  constructor(
    private readonly database: TestDatabase,
    private readonly services: readonly Service[] = [],
  ) {}

  open(): PostgresMessages {
    const options = this.options();
    const messages = new PostgresMessages(options);
    this.names.set(messages, options.applicationName);
    return messages;
  }

  async spawnConsumer(handled: number): Promise<ConsumerProcess> {
    const consumer = await spawnConsumerProcess({ options: this.options(), group: SUITE_GROUP, handled });
    this.processes.push(consumer);
    return consumer;
  }

  async cut(messages?: Messages): Promise<void> {
    const name = messages ? this.names.get(messages) : `${this.schema}-%`;
    await this.database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name LIKE $1 AND datname = current_database()`,
      [name],
    );
  }

  async publishRaw(topic: string, value: unknown): Promise<void> {
    for (const group of Object.keys(SUITE_TOPICS[topic as keyof typeof SUITE_TOPICS].groups)) {
      await this.insert(`${topic}.${group}`, { messages: [value] });
    }
  }

  /** Puts any payload into a queue, as a foreign program might. */
  async insert(queue: string, data: unknown): Promise<void> {
    await this.insertText(queue, JSON.stringify(data));
  }

  async insertText(queue: string, json: string): Promise<void> {
    await this.database.query(`INSERT INTO ${this.schema}.batch (queue, data) VALUES ($1, $2)`, [queue, json]);
  }

  async dead(topic: string, group: string): Promise<{ reason: string; message: unknown }[]> {
    return this.database.query<{ reason: string; message: unknown }>(
      `SELECT reason, message FROM ${this.schema}.dead WHERE queue = $1`,
      [`${topic}.${group}`],
    );
  }

  async waiting(): Promise<number> {
    const [row] = await this.database.query<{ batches: number }>(
      `SELECT count(*)::int AS batches FROM ${this.schema}.batch`,
    );
    return row!.batches;
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((consumer) => consumer.kill()));
    await this.database.query(`DROP SCHEMA IF EXISTS ${this.schema}, ${this.formerSchema} CASCADE`);
  }

  private options(): PostgresMessagesOptions & { applicationName: string } {
    const applicationName = `${this.schema}-${this.names.size + this.processes.length}`;
    return {
      url: this.database.url,
      applicationName,
      schema: this.schema,
      formerSchema: this.formerSchema,
      topics: SUITE_TOPICS,
      services: this.services,
    };
  }
}
