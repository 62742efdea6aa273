import { setTimeout } from 'node:timers/promises';
import { UnavailableError } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import {
  CompressionTypes,
  Partitioners,
  type IHeaders,
  type Message,
  type Producer,
  type TopicMessages,
} from 'kafkajs';
import { backoffMs } from '../signal';
import { BrokerClock } from './broker-clock';
import { createKafka, Sockets, type KafkaConnection } from './connection';
import { withTimeout } from './with-timeout';

/** Uncompressed bytes of one send, unless a single message is larger. Even if all of it falls to one partition, it is less than the topics' `max.message.bytes`. */
const MAX_SEND_BYTES = 900 * 1024;
/** The largest single message, so that it fits with its framing. */
export const MAX_MESSAGE_BYTES = MAX_SEND_BYTES;
/** What waits for the send under way; beyond this, publishing fails at once. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** A send that has not succeeded by then fails, and what waits behind it; it may have happened all the same. */
export const SEND_TIMEOUT_MS = 10_000;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 1_000;
const MAX_CLOCK_TRIES = 3;
/** Headers and framing of a message, roughly. */
const MESSAGE_OVERHEAD_BYTES = 100;

/**
 * A message and its place: by key or by partition. With neither, kafkajs would choose another partition at each of its tries, under sequence numbers that the broker may have seen
 * there: it would take the message for a repetition of another one and drop it.
 */
export type OutgoingMessage = { value: Buffer | null; headers?: IHeaders } & (
  { key: Buffer | string; partition?: number } | { key: Buffer | null; partition: number }
);

export interface Outgoing {
  topic: string;
  messages: readonly OutgoingMessage[];
}

/** One call of `send`; it may go out in several sends, one after the other. */
interface Waiting extends Outgoing {
  next: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

interface Link {
  producer: Producer;
  sockets: Sockets;
}

/**
 * Sends to Kafka, durably (idempotent producer, all replicas, gzip). One send is under way at a time; what gathers meanwhile, for all topics, is the next one.
 *
 * A producer that failed is never used again. kafkajs gives the sequence numbers of a failed batch to the next one; if the broker had stored the failed one after all, it
 * would take the next one for its repetition and drop it, and say that all is well. A new producer has a new id.
 */
export class Publisher {
  /** Kept right by what is sent to topics that the broker stamps. */
  readonly clock = new BrokerClock();
  private readonly waiting: Waiting[] = [];
  private waitingBytes = 0;
  private link: Promise<Link> | undefined;
  /** Of the link, also while it is being opened. */
  private sockets = new Sockets();
  private done: Promise<void> = Promise.resolve();
  private sending = false;
  private closed = false;

  constructor(private readonly connection: KafkaConnection) {}

  /** Connects, so that the first send need not; rejects when that fails. */
  async connect(): Promise<void> {
    await this.open();
  }

  /** Resolves when all messages are durable; rejects with UnavailableError when that is not known. Messages of one key keep their order. */
  send(outgoing: Outgoing): Promise<void> {
    if (this.closed) return Promise.reject(new UnavailableError('messages are closed'));
    if (outgoing.messages.length === 0) return Promise.resolve();
    const bytes = outgoing.messages.reduce((sum, message) => sum + sizeOf(message), 0);
    if (this.waitingBytes + bytes > MAX_WAITING_BYTES && this.waitingBytes > 0) {
      return Promise.reject(new UnavailableError('too much waits to be published'));
    }
    this.waitingBytes += bytes;
    const sent = new Promise<void>((resolve, reject) => {
      this.waiting.push({ ...outgoing, next: 0, resolve, reject });
    });
    if (!this.sending) {
      this.sending = true;
      this.done = this.sendAll();
    }
    return sent.finally(() => (this.waitingBytes -= bytes));
  }

  /** Sets the clock by records that mean nothing to who reads them, in a topic that the broker stamps: more than one, as the first may wait for connections. */
  async setClock(topic: string): Promise<void> {
    for (let tries = 0; tries < MAX_CLOCK_TRIES && !(tries > 0 && this.clock.isExact); tries++) {
      await this.send({ topic, messages: [{ key: null, partition: 0, value: Buffer.from('{}') }] });
    }
  }

  /** Breaks the connections, as a fault of the network does. */
  cut(): void {
    this.sockets.cut();
  }

  /** Sends what waits, and ends. */
  async close(): Promise<void> {
    this.closed = true;
    await this.done;
    const link = await this.link?.catch(() => undefined);
    await link?.producer.disconnect().catch((error: unknown) => logger('kafka').debug({ err: error }, 'disconnecting'));
    this.sockets.destroy();
  }

  private async sendAll(): Promise<void> {
    // What else is published in this turn of the event loop goes along.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.waiting.length > 0) {
      const { topicMessages, finished } = this.gather();
      try {
        await this.sendOrGiveUp(topicMessages);
        for (const entry of finished) entry.resolve();
        this.waiting.splice(0, finished.length);
      } catch (error) {
        logger('kafka').warn({ err: error, topics: topicMessages.map(({ topic }) => topic) }, 'could not publish');
        // Those that wait would wait as long again: they fail now, and have not been sent.
        for (const entry of this.waiting.splice(0)) {
          entry.reject(unavailable(error, entry.topic));
        }
      }
    }
    this.sending = false;
  }

  /** Bridges what passes within SEND_TIMEOUT_MS: a restart, a new leader (which kafkajs does not retry). */
  private async sendOrGiveUp(topicMessages: TopicMessages[]): Promise<void> {
    const until = Date.now() + SEND_TIMEOUT_MS;
    for (let attempt = 0; ; attempt++) {
      try {
        return await withTimeout(until - Date.now(), this.sendOnce(topicMessages));
      } catch (error) {
        this.abandon();
        const waitMs = backoffMs(attempt, RETRY_BASE_MS, MAX_RETRY_MS);
        if (this.closed || Date.now() + waitMs > until) throw error;
        logger('kafka').debug({ err: error, attempt }, 'publishing is tried again');
        await setTimeout(waitMs);
      }
    }
  }

  /** The next send: from the front, whole calls as far as they fit. */
  private gather(): { topicMessages: TopicMessages[]; finished: Waiting[] } {
    const byTopic = new Map<string, Message[]>();
    const finished: Waiting[] = [];
    let bytes = 0;
    for (const entry of this.waiting) {
      let messages = byTopic.get(entry.topic);
      if (!messages) byTopic.set(entry.topic, (messages = []));
      while (entry.next < entry.messages.length) {
        const message = entry.messages[entry.next]!;
        if (bytes > 0 && bytes + sizeOf(message) > MAX_SEND_BYTES) break;
        bytes += sizeOf(message);
        messages.push(message);
        entry.next++;
      }
      if (messages.length === 0) byTopic.delete(entry.topic);
      if (entry.next < entry.messages.length) break;
      finished.push(entry);
    }
    return { topicMessages: [...byTopic].map(([topic, messages]) => ({ topic, messages })), finished };
  }

  private async sendOnce(topicMessages: TopicMessages[]): Promise<void> {
    const { producer } = await this.open();
    const sentMs = performance.now();
    const sent = await producer.sendBatch({
      topicMessages,
      acks: -1,
      compression: CompressionTypes.GZIP,
      timeout: SEND_TIMEOUT_MS,
    });
    for (const { logAppendTime } of sent) this.clock.observe(Number(logAppendTime), sentMs, performance.now());
  }

  private open(): Promise<Link> {
    if (this.link) return this.link;
    const sockets = (this.sockets = new Sockets());
    const opening = (this.link = this.openLink(sockets));
    opening.catch(() => {
      if (this.link === opening) this.abandon();
    });
    return opening;
  }

  private async openLink(sockets: Sockets): Promise<Link> {
    const producer = createKafka(this.connection, sockets).producer({
      idempotent: true,
      allowAutoTopicCreation: false,
      createPartitioner: Partitioners.DefaultPartitioner,
    });
    await producer.connect();
    return { producer, sockets };
  }

  private abandon(): void {
    this.link = undefined;
    this.sockets.destroy();
  }
}

const sizeOf = ({ value, key }: { value: Buffer | string | null; key?: Buffer | string | null }): number =>
  (value?.length ?? 0) + (key?.length ?? 0) + MESSAGE_OVERHEAD_BYTES;

function unavailable(cause: unknown, topic: string): UnavailableError {
  return Object.assign(new UnavailableError(`could not publish to "${topic}": Kafka cannot be reached`), { cause });
}
