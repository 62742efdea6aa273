import { ASKERS, askersOf, type RequestService, type Service, type Subject } from '@tollgate/contracts';
import { logCapped, logger, settlesWithin } from '@tollgate/runtime';
import type { KafkaMessage } from 'kafkajs';
import { expiredRequests, forgedMessages, unreadableRequests } from '../../message-metrics';
import type { KafkaConnection } from '../client/connection';
import type { ConsumerTuning } from '../consume/group-consumer';
import { failureOf } from '../../request-failure';
import { fitsReply } from './reply-size';
import { MAX_MESSAGE_BYTES, type Publisher } from '../publish/publisher';
import { readRequest, writeReply, type Outcome, type RequestMessage } from './request-message';
import type { RightMissingError } from '../client/rights';
import type { Signatures } from '../sign/signatures';
import { SupervisedConsumer } from '../client/supervised-consumer';
import { requestTopic, type Names } from '../admin/topic-plan';
import type { OutgoingMessage } from '../publish/topic-publisher';

/** The maximum number of requests that are handled at the same time. Further ones wait. */
const MAX_CONCURRENT_REQUESTS = 256;
/** The maximum number of remembered requests, which must not be handled again. */
const MAX_SEEN = 10_000;
/** A handler that takes longer loses its place, whatever deadline the request has. */
const MAX_HANDLING_MS = 10_000;
/**
 * Clocks are right to some minutes. A request whose age by its sender's clock is greater is a repeat, whatever the
 * brokers' clock says.
 */
const MAX_CLOCK_DIFFERENCE_MS = 10 * 60_000;
const HEARTBEAT_MS = 500;
/** Its handlers delay no rebalance, so the rebalance need not wait for them. */
const REBALANCE_TIMEOUT_MS = 10_000;

/** A request and its sender, by its signature. */
interface VerifiedRequest extends RequestMessage {
  from: Service;
}

export type AnyHandler = (request: unknown) => Promise<unknown>;

/** The service that answers, and its handlers by subject. */
export interface AnsweringService {
  service: RequestService;
  handlers: ReadonlyMap<string, AnyHandler>;
}

/**
 * The answering side of request–reply, for the subjects of one service, whose replicas share the requests. The
 * consumer passes a request to its handler and moves on, so a slow or hanging handler blocks nothing. Usually a request
 * is handled once. A replica that dies may leave it unhandled, or leave it to another one. A request past its deadline
 * is not handled, so a request that waited through an outage has no late effects. A forged request is not handled
 * either: it gets no reply, and is counted.
 */
export class RequestServer {
  private readonly service: RequestService;
  private readonly handlers: ReadonlyMap<string, AnyHandler>;
  private readonly topic: string;
  private readonly askers: readonly Service[];
  private readonly consumer: SupervisedConsumer;
  private readonly inHand = new Set<Promise<void>>();
  /** The deadlines of the last requests by id. */
  private readonly seen = new Map<string, number>();

  constructor(
    connection: KafkaConnection,
    { service, handlers }: AnsweringService,
    private readonly names: Names,
    private readonly publisher: Publisher,
    private readonly signatures: Signatures,
    { sessionTimeoutMs }: ConsumerTuning,
  ) {
    this.service = service;
    this.handlers = handlers;
    const topic = requestTopic(service);
    this.topic = names.topic(topic);
    this.askers = askersOf(service);
    this.consumer = new SupervisedConsumer({
      connection,
      topic: this.topic,
      fromBeginning: true,
      config: () => ({
        groupId: names.handlers(service),
        sessionTimeout: sessionTimeoutMs,
        heartbeatInterval: HEARTBEAT_MS,
        rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      }),
      run: () => ({
        eachBatch: async ({ batch, heartbeat }) => {
          for (const message of batch.messages) await this.take(message, batch.partition, heartbeat);
        },
      }),
    });
  }

  start(): void {
    this.consumer.start();
  }

  /** Accepts no more requests, and answers those in progress while their replies are awaited. */
  async stop(): Promise<void> {
    await this.consumer.stop();
    await Promise.all(this.inHand);
  }

  /** The right that the user lacks for consuming. */
  get lack(): RightMissingError | undefined {
    return this.consumer.lack;
  }

  cut(): void {
    this.consumer.cut();
  }

  /** Resolves when there was a free place for it. */
  private async take(message: KafkaMessage, partition: number, heartbeat: () => Promise<void>): Promise<void> {
    const verified = this.signatures.verify(this.topic, message, this.service, this.askers);
    if ('reason' in verified) return this.rejectForged(message, partition, verified.reason);
    const read = readRequest(message);
    const request = read && { ...read, from: verified.from };
    const forgery = request && forgeryOf(request, partition);
    if (forgery) return this.rejectForged(message, partition, forgery);
    // A request without a subject is still answered: it may be from a replica of another version.
    if (!request || request.subject === '') {
      unreadableRequests.inc({ topic: requestTopic(this.service) });
      logCapped(this.log(), 'warn', { partition, offset: message.offset }, 'an unreadable request was ignored');
    }
    if (!request) return;
    if (this.isRepeated(request)) return;
    while (this.inHand.size >= MAX_CONCURRENT_REQUESTS) {
      // eslint-disable-next-line no-restricted-syntax -- the first of them to free its place
      await Promise.race(this.inHand);
      await heartbeat();
    }
    const place = this.whileAwaited(request, this.work(request)).finally(() => this.inHand.delete(place));
    this.inHand.add(place);
  }

  private rejectForged({ offset }: KafkaMessage, partition: number, reason: string): void {
    forgedMessages.inc({ topic: requestTopic(this.service), group: 'handlers' });
    logCapped(this.log(), 'error', { partition, offset, reason }, 'a forged request was not handled');
  }

  /** Resolves when the work is done, or when its reply is no longer awaited. */
  private async whileAwaited({ deadlineMs }: RequestMessage, work: Promise<void>): Promise<void> {
    const leftMs = deadlineMs - this.publisher.clock.earliestMs();
    await settlesWithin(Math.max(0, Math.min(MAX_HANDLING_MS, leftMs)), work);
  }

  private async work(request: VerifiedRequest): Promise<void> {
    try {
      const outcome = await this.answer(request);
      const messages = outcome ? [await this.reply(request, outcome)] : [];
      await this.publisher.send({ topic: this.names.topic('replies'), messages });
    } catch (error) {
      // The requester learns it at its deadline.
      this.log().warn({ err: error }, 'sending a reply failed');
    }
  }

  /** The publisher sends a large message alone, and compressed. */
  private async reply(request: VerifiedRequest, outcome: Outcome): Promise<OutgoingMessage> {
    const sign = (message: OutgoingMessage) =>
      this.signatures.sign(this.names.topic('replies'), message, this.service, [request.from]);
    const reply = writeReply(request, outcome);
    if (await fitsReply(reply.value!)) return sign(reply);
    this.log().error(
      { subject: request.subject, bytes: reply.value!.length, maxBytes: MAX_MESSAGE_BYTES },
      'a reply is too large to be sent',
    );
    return sign(writeReply(request, { unavailable: true }));
  }

  /** Undefined for a request whose reply is no longer awaited. */
  private async answer(request: RequestMessage): Promise<Outcome | undefined> {
    if (await this.isLate(request)) {
      expiredRequests.inc({ service: this.service });
      this.log().debug({ id: request.id, deadlineMs: request.deadlineMs }, 'past its deadline');
      return undefined;
    }
    const { subject } = request;
    const handler = this.handlers.get(subject);
    if (!handler) {
      this.log().warn({ subject }, 'this subject has no handler');
      return { unavailable: true };
    }
    try {
      return { reply: (await handler(request.request)) ?? null };
    } catch (error) {
      return failureOf(error, subject, this.log());
    }
  }

  private async isLate({ deadlineMs }: RequestMessage): Promise<boolean> {
    const { clock } = this.publisher;
    if (clock.latestMs() <= deadlineMs) return false;
    // A request is refused only by a fresh clock, so that one wrong sample does not refuse all of them.
    if (!clock.isFresh || !clock.isExact) await this.publisher.setClock(this.names.topic('replies'));
    return clock.earliestMs() > deadlineMs;
  }

  /** Whether the request was received before: an uncertain publisher repeats. */
  private isRepeated({ id, deadlineMs }: RequestMessage): boolean {
    if (this.seen.has(id)) return true;
    if (this.seen.size >= MAX_SEEN) {
      const now = this.publisher.clock.earliestMs();
      for (const [old, deadline] of this.seen) if (deadline < now || this.seen.size >= MAX_SEEN) this.seen.delete(old);
    }
    this.seen.set(id, deadlineMs);
    return false;
  }

  private log() {
    return logger('messaging').child({ service: this.service });
  }
}

/** Why a request with a valid signature still counts as forged: its sender may not send it, or it is a repeat. */
function forgeryOf(
  { subject, from, partition: signed, askedMs }: VerifiedRequest,
  partition: number,
): string | undefined {
  if (Object.hasOwn(ASKERS, subject) && !ASKERS[subject as Subject].includes(from))
    return `${from} may not request "${subject}"`;
  if (signed !== partition) return `repeated by someone else: it was sent to partition ${signed}`;
  const agoMs = Date.now() - askedMs;
  if (Math.abs(agoMs) <= MAX_CLOCK_DIFFERENCE_MS) return undefined;
  return (
    `repeated by someone else, or one of two clocks is wrong: ` +
    `sent ${Math.round(agoMs / 1_000)} s ago by the clock of ${from}`
  );
}
