import { UnavailableError } from '@tollgate/contracts';
import { backoffMs, delay, logger, settlesWithin, withTimeout } from '@tollgate/runtime';
import { CompressionTypes, type IHeaders, type Producer } from 'kafkajs';
import type { BrokerClock } from './broker-clock';
import { createKafka, Sockets, type KafkaConnection } from '../client/connection';
import { createRememberingPartitioner } from './partitioner';
import { isRefused, RightMissingError } from '../client/rights';

/**
 * The maximum uncompressed bytes of one send, unless a single message is larger. Even if all of it goes to one
 * partition, it is less than the topics' `max.message.bytes`.
 */
export const MAX_SEND_BYTES = 900 * 1024;
/**
 * A send that is not confirmed within this time is given up, and all queued messages fail with it. Its messages may
 * still reach the topic.
 */
const SEND_TIMEOUT_MS = 10_000;
/**
 * SEND_TIMEOUT_MS while the process ends. It is shorter, so that the process ends before it is killed. Messages that
 * fail are published by the next process.
 */
const HURRIED_SEND_TIMEOUT_MS = 3_000;
const DISCONNECT_TIMEOUT_MS = 1_000;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 1_000;
/** The approximate framing of a message. */
const MESSAGE_OVERHEAD_BYTES = 100;

/**
 * A message with a key or a partition, so that each attempt sends it to the same partition. Otherwise kafkajs would
 * choose another one at each attempt, with sequence numbers that the broker may have seen there. The broker would take
 * the message for a repeat of another one and drop it.
 */
export type OutgoingMessage = { value: Buffer | null; headers?: IHeaders } & (
  { key: Buffer | string; partition?: number } | { key: Buffer | null; partition: number }
);

/** One call of `send`. A large one takes several sends to Kafka, one after the other. */
interface Waiting {
  messages: readonly OutgoingMessage[];
  /** The index of the first message that is not in a send yet. */
  next: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

interface Link {
  producer: Producer;
  sockets: Sockets;
}

/**
 * Sends to one topic (idempotent producer, all replicas, gzip). One send is in flight at a time. Messages that gather
 * meanwhile form the next one.
 *
 * A producer that failed is never used again. kafkajs gives the sequence numbers of a failed batch to the next one. If
 * the broker had stored the failed batch after all, it would take the next one for a repeat, drop it, and report
 * success. A new producer has a new id.
 */
export class TopicPublisher {
  private readonly waiting: Waiting[] = [];
  private link: Promise<Link> | undefined;
  /** The close function of the link, also while it is being opened. */
  private sockets = new Sockets();
  private done: Promise<void> = Promise.resolve();
  private sending = false;
  private closed = false;
  private sendTimeoutMs = SEND_TIMEOUT_MS;
  /** Until when the send in flight is tried, epoch milliseconds. */
  private tryUntilMs = 0;
  /** Ends the current attempt. */
  private giveUp: (error: Error) => void = () => {};
  private hurrying: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: KafkaConnection,
    private readonly topic: string,
    private readonly clock: BrokerClock,
  ) {}

  /** Resolves when all messages are durable. Rejects with UnavailableError when that is uncertain. */
  send(messages: readonly OutgoingMessage[]): Promise<void> {
    const sent = new Promise<void>((resolve, reject) => {
      this.waiting.push({ messages, next: 0, resolve, reject });
    });
    if (!this.sending) {
      this.sending = true;
      this.done = this.sendAll();
    }
    return sent;
  }

  /** Breaks the connections, like a network fault. */
  cut(): void {
    this.sockets.cut();
  }

  /** The process is ending: each send, including the one in flight, is given up after HURRIED_SEND_TIMEOUT_MS. */
  hurry(): void {
    if (this.hurrying) return;
    this.sendTimeoutMs = HURRIED_SEND_TIMEOUT_MS;
    const untilMs = Date.now() + HURRIED_SEND_TIMEOUT_MS;
    if (this.tryUntilMs > untilMs) this.tryUntilMs = untilMs;
    this.hurrying = setTimeout(() => {
      // Not a later attempt, which has its own time.
      if (this.tryUntilMs <= untilMs) this.giveUp(new Error(`no answer within ${HURRIED_SEND_TIMEOUT_MS} ms`));
    }, HURRIED_SEND_TIMEOUT_MS);
  }

  /** Sends queued messages, and ends. */
  async close(): Promise<void> {
    this.closed = true;
    this.hurry();
    await this.done;
    clearTimeout(this.hurrying);
    const link = await this.link?.catch(() => undefined);
    if (link) await settlesWithin(DISCONNECT_TIMEOUT_MS, link.producer.disconnect());
    this.sockets.destroy();
  }

  private async sendAll(): Promise<void> {
    // Other messages of this turn of the event loop go along.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.waiting.length > 0) {
      const { messages, finished } = this.gather();
      try {
        await this.sendOrGiveUp(messages);
        for (const entry of finished) entry.resolve();
        this.waiting.splice(0, finished.length);
      } catch (error) {
        logger('kafka').warn({ err: error, topic: this.topic }, 'could not publish');
        // Queued messages would wait as long again. They fail now, and have not been sent.
        for (const entry of this.waiting.splice(0)) entry.reject(unavailable(error, this.topic));
      }
    }
    this.sending = false;
  }

  /** Bridges short failures within SEND_TIMEOUT_MS: a restart, or a new leader (which kafkajs does not retry). */
  private async sendOrGiveUp(messages: OutgoingMessage[]): Promise<void> {
    this.tryUntilMs = Date.now() + this.sendTimeoutMs;
    for (let attempt = 0; ; attempt++) {
      try {
        const givenUp = new Promise<never>((_, reject) => (this.giveUp = reject));
        // eslint-disable-next-line no-restricted-syntax -- `hurry` may end the try before its time
        const sent = Promise.race([this.sendOnce(messages), givenUp]);
        return await withTimeout(this.tryUntilMs - Date.now(), sent);
      } catch (error) {
        this.abandon();
        const waitMs = backoffMs(attempt, RETRY_BASE_MS, MAX_RETRY_MS);
        if (this.closed || isRefused(error) || Date.now() + waitMs > this.tryUntilMs) throw error;
        logger('kafka').debug({ err: error, attempt }, 'retrying to publish');
        await delay(waitMs);
      }
    }
  }

  /** The next send: whole calls from the front of the queue, as far as they fit. */
  private gather(): { messages: OutgoingMessage[]; finished: Waiting[] } {
    const messages: OutgoingMessage[] = [];
    const finished: Waiting[] = [];
    let bytes = 0;
    for (const entry of this.waiting) {
      while (entry.next < entry.messages.length) {
        const message = entry.messages[entry.next]!;
        if (bytes > 0 && bytes + sizeOf(message) > MAX_SEND_BYTES) break;
        bytes += sizeOf(message);
        messages.push(message);
        entry.next++;
      }
      if (entry.next < entry.messages.length) break;
      finished.push(entry);
    }
    return { messages, finished };
  }

  private async sendOnce(messages: OutgoingMessage[]): Promise<void> {
    const { producer } = await this.open();
    const sentMs = performance.now();
    const sent = await producer.send({
      topic: this.topic,
      messages,
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
      createPartitioner: createRememberingPartitioner,
    });
    await producer.connect();
    return { producer, sockets };
  }

  private abandon(): void {
    this.link = undefined;
    this.sockets.destroy();
  }
}

export function sizeOf({ value, key, headers }: OutgoingMessage): number {
  let bytes = (value?.length ?? 0) + (key?.length ?? 0) + MESSAGE_OVERHEAD_BYTES;
  for (const name in headers)
    bytes += name.length + [headers[name]!].flat().reduce((sum, each) => sum + each.length, 0);
  return bytes;
}

function unavailable(cause: unknown, topic: string): UnavailableError {
  const lack = isRefused(cause) ? new RightMissingError(`WRITE on topic "${topic}"`, cause) : undefined;
  const why = lack ? `Kafka refuses the user: ${lack.message}` : 'Kafka cannot be reached';
  return Object.assign(new UnavailableError(`could not publish to "${topic}": ${why}`), { cause: lack ?? cause });
}
