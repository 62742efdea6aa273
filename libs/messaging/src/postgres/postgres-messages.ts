import {
  TOPICS,
  UnavailableError,
  type ReplyOf,
  type RequestOf,
  type Subject,
  type Topic,
  type TopicTypes,
} from '@tollgate/contracts';
import { connectionConfig, outliveConnections, sqlState } from '@tollgate/postgres';
import { logger, settlesWithin } from '@tollgate/runtime';
import { Pool } from 'pg';
import { PgBoss, type Db } from 'pg-boss';
import { seal } from '../envelope';
import { InProcessRequests } from '../in-process-requests';
import { waitingMessages } from '../message-metrics';
import {
  Messages,
  MessagesRefusedError,
  type BatchHandler,
  type RequestHandler,
  type MessageValidator,
} from '../messages';
import { ConsumerSession } from './consumer-session';
import { GroupConsumer, type ConsumedGroup } from './group-consumer';
import { countWaiting, createQueues, insertJobs, queueName, toJobs, type Topics } from './queues';

/** Connections for publishing. Consuming has one more. */
const POOL_SIZE = 3;
/** A publish without an answer by then fails. It may have succeeded all the same. */
const QUERY_TIMEOUT_MS = 10_000;
/** A batch whose handler takes longer than this after `stopConsuming` is abandoned. It will be redelivered. */
const STOP_TIMEOUT_MS = 15_000;
const DEFAULT_SCHEMA = 'pgboss';

export interface PostgresMessagesOptions {
  url: string;
  applicationName: string;
  /** The schema of pg-boss, created by `start`. Processes that share it share their messages. */
  schema?: string;
  topics?: Topics;
}

type State = 'new' | 'starting' | 'started' | 'closed';

/**
 * Messages in pg-boss's tables in PostgreSQL; request–reply within the process. README.md says how each guarantee is
 * kept. `publish` rejects with UnavailableError while the server cannot be reached, before `start` and after `close`.
 * Consuming recovers by itself.
 */
export class PostgresMessages extends Messages {
  private readonly options: Required<PostgresMessagesOptions>;
  private readonly requests = new InProcessRequests();
  private readonly groups = new Map<string, ConsumedGroup>();
  private readonly pool: Pool;
  private readonly boss: PgBoss;
  private consumers: GroupConsumer[] = [];
  private session: Promise<ConsumerSession> | undefined;
  private channel = '';
  private state: State = 'new';
  private stopMeasuring: () => void = () => {};

  constructor(options: PostgresMessagesOptions) {
    super();
    this.options = { schema: DEFAULT_SCHEMA, topics: TOPICS, ...options };
    this.pool = new Pool({ ...connectionConfig(this.options), max: POOL_SIZE, query_timeout: QUERY_TIMEOUT_MS });
    outliveConnections(this.pool);
    const db: Db = {
      executeSql: (text, values) => this.pool.query(text, values),
      // pg-boss names the channel on which its inserts notify. The consumer session listens on it itself.
      listen: async (channel) => {
        this.channel = channel;
        return { close: async () => {} };
      },
    };
    // Messages leave the table when acknowledged, so pg-boss has nothing to expire, delete, monitor or schedule.
    this.boss = new PgBoss({
      db,
      schema: this.options.schema,
      supervise: false,
      schedule: false,
      useListenNotify: true,
    });
    this.boss.on('error', (error) => logger('messaging').warn({ err: error }, 'pg-boss reported an error'));
    this.boss.on('warning', (warning) => logger('messaging').warn({ warning }, 'pg-boss warns'));
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
      await this.boss.start();
      await createQueues(this.boss, this.options.topics);
    } catch (error) {
      this.state = 'new';
      throw error;
    }
    this.state = 'started';
    this.stopMeasuring = waitingMessages.from(() => this.waiting());
    this.consumers = [...this.groups.values()].map(
      (group) => new GroupConsumer(group, this.boss, () => this.openSession()),
    );
    for (const consumer of this.consumers) consumer.start();
  }

  async publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void> {
    this.assertStarted();
    if (messages.length === 0) return;
    const definition = Object.hasOwn(this.options.topics, topic) ? this.options.topics[topic] : undefined;
    if (!definition) throw new MessagesRefusedError(`there is no topic "${topic}"`);
    const jobs = toJobs(seal(definition, messages));
    const queues = Object.keys(definition.groups).map((group) => queueName(topic, group));
    try {
      if (queues.length === 1) {
        await insertJobs(this.boss, queues[0]!, jobs);
      } else {
        await this.inTransaction(async (db) => {
          for (const queue of queues) await insertJobs(this.boss, queue, jobs, db);
        });
      }
    } catch (error) {
      if (isRefusal(error)) throw new MessagesRefusedError(`"${topic}": ${(error as Error).message}`, { cause: error });
      if (isDefect(error)) throw error;
      const unavailable = new UnavailableError(`could not publish to "${topic}": the message store cannot be reached`);
      throw Object.assign(unavailable, { cause: error });
    }
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
    await this.boss.stop({ graceful: false });
    await this.pool.end();
  }

  /** The session that all consumers of this process share. It is replaced when it is lost. */
  private openSession(): Promise<ConsumerSession> {
    this.session ??= ConsumerSession.open({
      ...this.options,
      channel: this.channel,
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

  private async inTransaction(work: (db: Db) => Promise<void>): Promise<void> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      await work({ executeSql: (text, values) => client.query(text, values) });
      await client.query('COMMIT');
      client.release();
    } catch (error) {
      // Not reused: closing it rolls back, whatever its state.
      client.release(true);
      throw error;
    }
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
 * Whether the server rejected the call for a reason of its own: a missing table or right, an internal error. An
 * operator must fix it; then the messages can be published.
 */
function isDefect(error: unknown): boolean {
  return /^(42|P0|XX)\w{3}$/.test(sqlState(error) ?? '');
}
