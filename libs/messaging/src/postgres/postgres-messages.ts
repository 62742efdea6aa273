import {
  TOPICS,
  UnavailableError,
  type ReplyOf,
  type RequestOf,
  type Service,
  type Subject,
  type Topic,
  type TopicTypes,
} from '@tollgate/contracts';
import { connectionConfig, outliveConnections, query, queryPrepared, sqlState } from '@tollgate/postgres';
import { logger, settlesWithin } from '@tollgate/runtime';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { seal } from '../envelope';
import { InProcessRequests } from '../in-process-requests';
import { waitingMessages } from '../message-metrics';
import {
  Messages,
  MessagesRefusedError,
  type BatchHandler,
  type RequestHandler,
  type MessageValidator,
  type TransactionalPublisher,
} from '../messages';
import { ConsumerSession } from './consumer-session';
import { GroupConsumer, type ConsumedGroup } from './group-consumer';
import {
  countWaiting,
  grantPublishing,
  insertBatches,
  makeTables,
  MIGRATIONS,
  queueName,
  type Statement,
  type Topics,
} from './queues';

/** Connections for publishing. Consuming has one more. */
const POOL_SIZE = 3;
/** The time limit of a publish. One that times out may still have succeeded. */
const QUERY_TIMEOUT_MS = 10_000;
/** A batch whose handler takes longer than this after `stopConsuming` is abandoned. It will be redelivered. */
const STOP_TIMEOUT_MS = 15_000;
const DEFAULT_FORMER_SCHEMA = 'pgboss';

export interface PostgresMessagesOptions {
  url: string;
  applicationName: string;
  /** The schema of the tables, which `start` makes. Processes that share it share their messages. */
  schema?: string;
  /** The schema in which the former version keeps its messages, as jobs of pg-boss. They are consumed too. */
  formerSchema?: string;
  topics?: Topics;
  /** The services whose data are in the same database. They publish in their own transactions, without an outbox. */
  services?: readonly Service[];
}

type State = 'new' | 'starting' | 'started' | 'closed';

/**
 * Messages in a table of PostgreSQL; request–reply within the process. README.md says how each guarantee is
 * kept. `publish` rejects with UnavailableError while the server cannot be reached, before `start` and after `close`.
 * Consuming recovers by itself.
 */
export class PostgresMessages extends Messages {
  private readonly options: Required<PostgresMessagesOptions>;
  private readonly requests = new InProcessRequests();
  private readonly groups = new Map<string, ConsumedGroup>();
  private readonly pool: Pool;
  private consumers: GroupConsumer[] = [];
  private session: Promise<ConsumerSession> | undefined;
  private state: State = 'new';
  private stopMeasuring: () => void = () => {};
  override readonly transactional: TransactionalPublisher;

  constructor(options: PostgresMessagesOptions) {
    super();
    this.options = {
      schema: MIGRATIONS.schema,
      formerSchema: DEFAULT_FORMER_SCHEMA,
      topics: TOPICS,
      services: [],
      ...options,
    };
    this.pool = new Pool({ ...connectionConfig(this.options), max: POOL_SIZE, query_timeout: QUERY_TIMEOUT_MS });
    outliveConnections(this.pool);
    this.transactional = {
      services: this.options.services,
      publish: (tx, topic, messages) => this.publishWithin(tx, topic, messages),
      announce: (topics) => this.announce(topics),
    };
  }

  consume<T extends Topic>(
    topic: T,
    group: string,
    handler: BatchHandler<TopicTypes[T]>,
    { validate }: { validate?: MessageValidator } = {},
  ): void {
    this.assertNew();
    const definition = this.options.topics[topic];
    const queue = queueName(topic, group);
    if (!Object.hasOwn(definition.groups, group)) throw new Error(`"${group}" is not a group of topic "${topic}"`);
    if (this.groups.has(queue)) throw new Error(`"${queue}" has a consumer already`);
    this.groups.set(queue, { topic, group, definition, handler: handler as BatchHandler<unknown>, validate });
  }

  handle<S extends Subject>(subject: S, handler: RequestHandler<S>): void {
    this.assertNew();
    this.requests.handle(subject, handler);
  }

  async request<S extends Subject>(
    subject: S,
    request: RequestOf<S>,
    options: { deadlineMs?: number } = {},
  ): Promise<ReplyOf<S>> {
    this.assertStarted();
    return this.requests.request(subject, request, options.deadlineMs);
  }

  async start(): Promise<void> {
    this.assertNew();
    this.state = 'starting';
    try {
      await makeTables(this.options);
      if (this.options.services.length > 0) await grantPublishing(this.options, this.options.services);
    } catch (error) {
      this.state = 'new';
      throw error;
    }
    this.state = 'started';
    this.stopMeasuring = waitingMessages.from(() => this.waiting());
    this.consumers = [...this.groups.values()].map((group) => new GroupConsumer(group, () => this.openSession()));
    for (const consumer of this.consumers) consumer.start();
  }

  async publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void> {
    this.assertStarted();
    if (messages.length === 0) return;
    const call = this.publishCall(topic, messages);
    if (call === null) return;
    try {
      await this.pool.query(call);
    } catch (error) {
      if (isRefusal(error)) throw new MessagesRefusedError(`"${topic}": ${(error as Error).message}`, { cause: error });
      if (isDefect(error)) throw error;
      const unavailable = new UnavailableError(`could not publish to "${topic}": the message store cannot be reached`);
      throw Object.assign(unavailable, { cause: error });
    }
    this.announce([topic]);
  }

  private async publishWithin<T extends Topic>(
    tx: EntityManager,
    topic: T,
    messages: readonly TopicTypes[T][],
  ): Promise<boolean> {
    if (this.state !== 'started') return false;
    const call = this.publishCall(topic, messages);
    // Only the statement of one batch has a constant text. A longer call keeps no plan.
    if (call !== null) await (call.name ? queryPrepared : query)(tx, call.text, call.values);
    return true;
  }

  /** Consumers of other processes learn of new messages from the server. */
  private announce(topics: Iterable<Topic>): void {
    for (const topic of topics)
      for (const group of Object.keys(this.options.topics[topic].groups))
        for (const consumer of this.consumers) consumer.onNews(queueName(topic, group), false);
  }

  /** Null: nobody consumes the topic, so it keeps nothing. */
  private publishCall<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Statement | null {
    const definition = Object.hasOwn(this.options.topics, topic) ? this.options.topics[topic] : undefined;
    if (!definition) throw new MessagesRefusedError(`there is no topic "${topic}"`);
    const queues = Object.keys(definition.groups).map((group) => queueName(topic, group));
    if (queues.length === 0) return null;
    const isHere = (queue: string) => this.consumers.some((one) => one.queue === queue && one.consuming);
    const remote = queues.filter((queue) => !isHere(queue));
    return insertBatches(this.options.schema, seal(definition, messages), { queues, remote });
  }

  async stopConsuming(): Promise<void> {
    const stopping = Promise.all(this.consumers.map((consumer) => consumer.stop()));
    if (await settlesWithin(STOP_TIMEOUT_MS, stopping)) await stopping;
    else logger('messaging').warn('a handler did not return in time; its batch will be redelivered');
    const session = await this.session?.catch(() => undefined);
    if (session && !session.lost) await session.close();
    this.session = undefined;
    this.consumers = [];
  }

  async close(): Promise<void> {
    if (this.state === 'closed') return;
    this.stopMeasuring();
    await this.stopConsuming();
    this.state = 'closed';
    await this.pool.end();
  }

  /** The session that all consumers of this process share. It is replaced when it is lost. */
  private openSession(): Promise<ConsumerSession> {
    this.session ??= ConsumerSession.open({
      ...this.options,
      onNews: (queue, released) => this.consumers.forEach((consumer) => consumer.onNews(queue, released)),
      onLost: () => this.consumers.forEach((consumer) => consumer.onSessionLost()),
    });
    const opening = this.session;
    return opening.then(
      (session) => {
        if (!session.lost) return session;
        if (this.session === opening) this.session = undefined;
        return this.openSession();
      },
      (error: unknown) => {
        if (this.session === opening) this.session = undefined;
        throw error;
      },
    );
  }

  private async waiting() {
    const counts = await countWaiting(this.pool, this.options.schema, [...this.groups.keys()]);
    return [...this.groups].map(([queue, { topic, group }]) => ({
      labels: { topic, group },
      value: counts.get(queue) ?? 0,
    }));
  }

  private assertNew(): void {
    if (this.state !== 'new') throw new Error('register before start, and start once');
  }

  private assertStarted(): void {
    if (this.state === 'started') return;
    throw new UnavailableError(this.state === 'closed' ? 'messages are closed' : 'messages are not started');
  }
}

/** Whether the server rejected these very messages: bad data, too much of it, a violated constraint. */
function isRefusal(error: unknown): boolean {
  return /^(2[23]|54)\w{3}$/.test(sqlState(error) ?? '');
}

/**
 * Whether the server rejected the call for its own reason: a missing table or right, an internal error. An
 * operator must fix it; then the messages can be published.
 */
function isDefect(error: unknown): boolean {
  return /^(42|P0|XX)\w{3}$/.test(sqlState(error) ?? '');
}
