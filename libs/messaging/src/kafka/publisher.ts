import { UnavailableError } from '@tollgate/contracts';
import type { KafkaMessage } from 'kafkajs';
import { BrokerClock } from './broker-clock';
import type { KafkaConnection } from './connection';
import { MAX_SEND_BYTES, sizeOf, TopicPublisher, type OutgoingMessage } from './topic-publisher';

/** The largest single message, so that it fits with its framing. */
export const MAX_MESSAGE_BYTES = MAX_SEND_BYTES;
/** What waits for the sends under way; beyond this, publishing fails at once. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Of these, what one topic may take: one that cannot be written leaves room for the others. */
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
 * Sends to Kafka, durably. Each topic has a producer of its own: one that cannot be written (a partition without a
 * leader, fewer replicas in sync than it wants) fails alone. With one for all, kafkajs would fail what goes along with
 * it, and not read where the others' leaders are either.
 */
export class Publisher {
  /** Kept right by what is sent to topics that the broker stamps. */
  readonly clock = new BrokerClock();
  private readonly lanes = new Map<string, Lane>();
  private waitingBytes = 0;
  private closed = false;
  private hurried = false;

  constructor(private readonly connection: KafkaConnection) {}

  /**
   * Resolves when all messages are durable; rejects with UnavailableError when that is not known. Messages of one key
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
      throw new UnavailableError('too much waits to be published');
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
   * Sets the clock by records that mean nothing to who reads them, in a topic that the broker stamps: more than one, as
   * the first may wait for connections.
   */
  async setClock(topic: string): Promise<void> {
    for (let tries = 0; tries < MAX_CLOCK_TRIES && !(tries > 0 && this.clock.isExact); tries++) {
      await this.send({ topic, messages: [{ key: null, partition: 0, value: CLOCK_RECORD }] });
    }
  }

  /** Breaks the connections, as a fault of the network does. */
  cut(): void {
    for (const { publisher } of this.lanes.values()) publisher.cut();
  }

  /** The process ends: no send takes longer than some seconds from now on. */
  hurry(): void {
    this.hurried = true;
    for (const { publisher } of this.lanes.values()) publisher.hurry();
  }

  /** Sends what waits, and ends. */
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

/** One of `setClock`, of any process. */
export const isClockRecord = ({ value, headers = {} }: KafkaMessage): boolean =>
  value !== null && CLOCK_RECORD.equals(value) && Object.keys(headers).length === 0;

const isOver = (waiting: number, bytes: number, limit: number): boolean => waiting > 0 && waiting + bytes > limit;
