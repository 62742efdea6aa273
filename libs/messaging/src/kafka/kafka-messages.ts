import {
  consumersOf,
  serviceOf,
  TOPICS,
  UnavailableError,
  type ReplyOf,
  type RequestOf,
  type RequestService,
  type Subject,
  type Topic,
  type TopicTypes,
} from '@tollgate/contracts';
import { seal } from '../envelope';
import {
  DEFAULT_REQUEST_DEADLINE_MS,
  Messages,
  MessagesRefusedError,
  type BatchHandler,
  type RequestHandler,
  type MessageValidator,
} from '../messages';
import { checkTopics, unusable, type TopicsOptions } from './admin/apply-topics';
import { BrokerProbe } from './client/broker-probe';
import type { KafkaConnection } from './client/connection';
import { groupLag } from './consume/group-lag';
import { waitingMessages } from '../message-metrics';
import { GroupConsumer, type ConsumerTuning } from './consume/group-consumer';
import { MAX_MESSAGE_BYTES, Publisher } from './publish/publisher';
import { PatientStart } from './patient-start';
import type { ConsumedGroup } from './consume/record-reader';
import { RequestClient } from './requests/request-client';
import { RequestServer, type AnyHandler } from './requests/request-server';
import { RightMissingError } from './client/rights';
import { MAX_RECORD_MESSAGES, packRecords } from './publish/shared-records';
import { Signatures, type Identity } from './sign/signatures';
import { Names, type Topics } from './admin/topic-plan';

/** The minimum of brokers with default settings. */
const DEFAULT_SESSION_TIMEOUT_MS = 6_000;
/**
 * One: a handler is called with one batch at a time, as the seam says. Only handlers that allow concurrent calls for
 * different keys may use more.
 */
const DEFAULT_CONCURRENT_PARTITIONS = 1;

export interface KafkaMessagesOptions extends Partial<ConsumerTuning> {
  connection: KafkaConnection;
  /** The identity with which this process signs its messages. */
  identity: Identity;
  /** A prefix of each topic and group name. Empty by default. */
  topicPrefix?: string;
  topics?: Topics;
  /** `start` resolves although brokers are down, and connects in the background. False by default. */
  startsWithoutBrokers?: boolean;
}

type State = 'new' | 'starting' | 'started' | 'closed';

/**
 * Messages on Kafka. README.md says how each guarantee is kept.
 *
 * - `start` rejects within 10 s when the brokers cannot be reached, or when a topic is missing or wrong. It creates no
 *   topic; `applyTopics` does. With `startsWithoutBrokers` it rejects only for topics and rights, which it learns from
 *   brokers that answer.
 * - Kafka may go down after the start. Until it returns, `publish` and `request` reject with UnavailableError in
 *   bounded time. Consuming recovers by itself.
 */
export class KafkaMessages extends Messages {
  private readonly connection: KafkaConnection;
  private readonly topics: Topics;
  private readonly names: Names;
  private readonly tuning: ConsumerTuning;
  private readonly topicsToCheck: TopicsOptions;
  private readonly groups = new Map<string, ConsumedGroup>();
  private readonly handlers = new Map<Subject, AnyHandler>();
  private readonly publisher: Publisher;
  private readonly signatures: Signatures;
  private readonly client: RequestClient;
  private readonly probe: BrokerProbe;
  private consumers: GroupConsumer[] = [];
  private servers: RequestServer[] = [];
  private stopMeasuring: () => void = () => {};
  private state: State = 'new';
  /** The start in the background, with `startsWithoutBrokers`. */
  private readonly patient: PatientStart | undefined;
  private stopsConsuming = false;
  private closing: Promise<void> | undefined;

  constructor(options: KafkaMessagesOptions) {
    super();
    const { connection, topics = TOPICS, topicPrefix = '' } = options;
    this.connection = connection;
    this.topics = topics;
    this.names = new Names(topicPrefix);
    this.tuning = {
      sessionTimeoutMs: options.sessionTimeoutMs ?? DEFAULT_SESSION_TIMEOUT_MS,
      concurrentPartitions: options.concurrentPartitions ?? DEFAULT_CONCURRENT_PARTITIONS,
    };
    this.publisher = new Publisher(connection);
    this.signatures = new Signatures(options.identity);
    const { service } = this.signatures;
    // A service checks only its own topics: its user may not see others.
    this.topicsToCheck = { topics, topicPrefix, ...(service && { service }) };
    this.client = new RequestClient(connection, this.names, this.publisher, this.signatures);
    this.probe = new BrokerProbe(connection);
    if (options.startsWithoutBrokers)
      this.patient = new PatientStart(
        () => this.connect(),
        () => this.begin(),
      );
  }

  consume<T extends Topic>(
    topic: T,
    group: string,
    handler: BatchHandler<TopicTypes[T]>,
    { validate }: { validate?: MessageValidator } = {},
  ): void {
    this.assertNew();
    const definition = this.topics[topic];
    const name = this.names.group(topic, group);
    if (!Object.hasOwn(definition.groups, group)) throw new Error(`"${group}" is not a group of topic "${topic}"`);
    const service = this.signatures.asOneOf([definition.groups[group]!]);
    if (!service)
      throw new Error(`"${group}" of topic "${topic}" belongs to ${definition.groups[group]}, not to this process`);
    if (this.groups.has(name)) throw new Error(`"${name}" has a consumer already`);
    this.groups.set(name, { topic, group, definition, service, handler: handler as BatchHandler<unknown>, validate });
  }

  handle<S extends Subject>(subject: S, handler: RequestHandler<S>): void {
    if (this.handlers.has(subject)) throw new Error(`"${subject}" has a handler already`);
    this.assertNew();
    if (!this.signatures.asOneOf([serviceOf(subject)]))
      throw new Error(`"${subject}" is not for this process to answer`);
    this.handlers.set(subject, (request) => handler(request as RequestOf<S>));
  }

  async start(): Promise<void> {
    this.assertNew();
    this.state = 'starting';
    try {
      await (this.patient ? this.patient.start() : this.connect());
    } catch (error) {
      if (this.state === 'starting') this.state = 'new';
      throw error;
    }
    if (!this.patient) this.begin();
  }

  /** May be repeated after a failure. */
  private async connect(): Promise<void> {
    try {
      // Comes first: with a topic missing, everything that connects would only fail again and again.
      await checkTopics(this.connection, this.topicsToCheck);
      await this.client.start();
    } catch (error) {
      // The brokers went down during the start, or refuse a necessary right.
      const known = error instanceof UnavailableError || error instanceof RightMissingError;
      throw known ? unusable(this.connection, error) : error;
    }
  }

  private begin(): void {
    if (this.state !== 'starting' || this.stopsConsuming) return;
    this.consumers = [...this.groups.values()].map(
      (group) => new GroupConsumer(this.connection, group, this.names, this.publisher, this.signatures, this.tuning),
    );
    this.stopMeasuring = waitingMessages.from(() => this.waiting());
    const services = new Set([...this.handlers.keys()].map(serviceOf));
    this.servers = [...services].map((service) => this.serverOf(service));
    this.state = 'started';
    // Not awaited: joining a group can take as long as another member's handler.
    for (const consumer of [...this.consumers, ...this.servers]) consumer.start();
  }

  async publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void> {
    this.assertStarted();
    const definition = this.topics[topic];
    if (!definition) throw new MessagesRefusedError(`there is no topic "${topic}"`);
    const from = this.signatures.asOneOf(definition.producers);
    if (!from) throw new MessagesRefusedError(`only ${definition.producers.join(', ')} may publish "${topic}"`);
    const named = this.names.topic(topic);
    const to = consumersOf(definition);
    const written = seal(definition, messages).map((envelope) => {
      const json = JSON.stringify(envelope);
      if (Buffer.byteLength(json) > MAX_MESSAGE_BYTES)
        throw new MessagesRefusedError(`a message of "${topic}" is over ${MAX_MESSAGE_BYTES} bytes`);
      return { key: envelope.data[definition.key], json };
    });
    const records = packRecords(written, definition.sharesRecords ? MAX_RECORD_MESSAGES : 1);
    const signed = records.map((record) => this.signatures.sign(named, record, from, to));
    await this.publisher.send({ topic: named, messages: signed });
  }

  async request<S extends Subject>(
    subject: S,
    request: RequestOf<S>,
    { deadlineMs = DEFAULT_REQUEST_DEADLINE_MS }: { deadlineMs?: number } = {},
  ): Promise<ReplyOf<S>> {
    this.assertStarted();
    return (await this.client.request(subject, request, deadlineMs)) as ReplyOf<S>;
  }

  /** Rejects with the reason when the brokers do not answer now, or do not allow consuming. */
  async check(): Promise<void> {
    await this.probe.ask((admin) => admin.describeCluster());
    const { problem } = this.patient ?? {};
    if (problem !== undefined) throw new UnavailableError(`not connected to Kafka yet: ${problem}`);
    for (const { lack } of [...this.consumers, ...this.servers, this.client])
      if (lack) throw new UnavailableError(`Kafka does not allow consuming: ${lack.message}`);
  }

  async stopConsuming(): Promise<void> {
    this.stopsConsuming = true;
    this.patient?.stop();
    this.publisher.hurry();
    const stopping = [...this.consumers.splice(0), ...this.servers.splice(0)];
    await Promise.all(stopping.map((one) => one.stop()));
  }

  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private async end(): Promise<void> {
    this.stopMeasuring();
    this.probe.close();
    // 1. Finish batches and requests in progress, while their handlers can still publish.
    await this.stopConsuming();
    // 2. Fail requests that await a reply, and send queued messages.
    this.state = 'closed';
    await Promise.all([this.client.close(), this.publisher.close()]);
    this.signatures.close();
  }

  /** Breaks all connections, like a network fault. For tests. */
  protected cutConnections(): void {
    for (const part of [...this.consumers, ...this.servers, this.client, this.publisher]) part.cut();
  }

  private waiting() {
    return this.probe.ask((admin) =>
      Promise.all(
        [...this.groups.values()].map(async (consumed) => {
          const { topic, group } = consumed;
          return { labels: { topic, group }, value: await groupLag(admin, consumed, this.names) };
        }),
      ),
    );
  }

  private serverOf(service: RequestService): RequestServer {
    const handlers = new Map([...this.handlers].filter(([subject]) => serviceOf(subject) === service));
    const { connection, names, publisher, signatures, tuning } = this;
    return new RequestServer(connection, { service, handlers }, names, publisher, signatures, tuning);
  }

  private assertNew(): void {
    if (this.state !== 'new') throw new Error('register before start, and start once');
  }

  private assertStarted(): void {
    if (this.state === 'started') return;
    throw new UnavailableError(this.state === 'closed' ? 'messages are closed' : 'messages are not started');
  }
}
