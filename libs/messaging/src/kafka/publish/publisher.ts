import { UnavailableError } from '@tollgate/contracts';
import type { KafkaMessage } from 'kafkajs';
import { BrokerClock } from './broker-clock';
import type { KafkaConnection } from '../client/connection';
import { MAX_SEND_BYTES, sizeOf, TopicPublisher, type OutgoingMessage } from './topic-publisher';

/** The maximum size of a single message, so that it fits with its framing. */
export const MAX_MESSAGE_BYTES = MAX_SEND_BYTES;
/** The maximum size of queued messages. Beyond it, publishing fails at once. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** The maximum share of one topic, so that a topic that cannot be written leaves room for the others. */
const MAX_TOPIC_WAITING_BYTES = 48 * 1024 * 1024;
const MAX_CLOCK_TRIES = 3;
const CLOCK_RECORD = Buffer.from('{}');

export interface Outgoing {
  topic: string;
  messages: readonly OutgoingMessage[];
}

interface Lane {
  publisher: TopicPublisher;
  waitingBytes: number;
}

/**
 * Publishes durably to Kafka. Each topic has its own producer, so a topic that cannot be written (a partition without a
 * leader, too few replicas in sync) fails alone. With one producer for all topics, kafkajs would fail what is sent
 * together with it, and would not find the leaders of other topics either.
 */
export class Publisher {
  /** Updated by each send to a topic that the broker stamps. */
  readonly clock = new BrokerClock();
  private readonly lanes = new Map<string, Lane>();
  private waitingBytes = 0;
  private closed = false;
  private hurried = false;

  constructor(private readonly connection: KafkaConnection) {}

  /**
   * Resolves when all messages are durable. Rejects with UnavailableError when that is uncertain. Messages of one key
   * keep their order.
   */
  async send({ topic, messages }: Outgoing): Promise<void> {
    if (this.closed) throw new UnavailableError('messages are closed');
    if (messages.length === 0) return;
    const bytes = messages.reduce((sum, message) => sum + sizeOf(message), 0);
    const lane = this.laneOf(topic);
    if (
      isOver(this.waitingBytes, bytes, MAX_WAITING_BYTES) ||
      isOver(lane.waitingBytes, bytes, MAX_TOPIC_WAITING_BYTES)
    )
      throw new UnavailableError('too many messages wait to be published');
    this.waitingBytes += bytes;
    lane.waitingBytes += bytes;
    try {
      await lane.publisher.send(messages);
    } finally {
      this.waitingBytes -= bytes;
      lane.waitingBytes -= bytes;
    }
  }

  /**
   * Sets the clock by publishing records without meaning to a topic that the broker stamps. Several, because the first
   * may wait for connections.
   */
  async setClock(topic: string): Promise<void> {
    for (let tries = 0; tries < MAX_CLOCK_TRIES && !(tries > 0 && this.clock.isExact); tries++) {
      await this.send({ topic, messages: [{ key: null, partition: 0, value: CLOCK_RECORD }] });
    }
  }

  /** Breaks the connections, like a network fault. */
  cut(): void {
    for (const { publisher } of this.lanes.values()) publisher.cut();
  }

  /** The process is ending: from now on no send takes longer than a few seconds. */
  hurry(): void {
    this.hurried = true;
    for (const { publisher } of this.lanes.values()) publisher.hurry();
  }

  /** Sends queued messages, and ends. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.lanes.values()].map(({ publisher }) => publisher.close()));
  }

  private laneOf(topic: string): Lane {
    let lane = this.lanes.get(topic);
    if (!lane) {
      const publisher = new TopicPublisher(this.connection, topic, this.clock);
      if (this.hurried) publisher.hurry();
      this.lanes.set(topic, (lane = { publisher, waitingBytes: 0 }));
    }
    return lane;
  }
}

/** Whether a record is one of `setClock`, of any process. */
export const isClockRecord = ({ value, headers = {} }: KafkaMessage): boolean =>
  value !== null && CLOCK_RECORD.equals(value) && Object.keys(headers).length === 0;

const isOver = (waiting: number, bytes: number, limit: number): boolean => waiting > 0 && waiting + bytes > limit;
