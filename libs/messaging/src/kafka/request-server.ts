import { RequestError, type RequestService } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import type { KafkaMessage } from 'kafkajs';
import { expiredRequests } from '../message-metrics';
import { DEFAULT_REQUEST_DEADLINE_MS } from '../messages';
import type { KafkaConnection } from './connection';
import type { ConsumerTuning } from './group-consumer';
import type { Publisher } from './publisher';
import { readRequest, requestTopic, writeReply, type Outcome, type RequestMessage } from './request-message';
import { SupervisedConsumer } from './supervised-consumer';
import type { Names } from './topic-plan';

/** In handlers' hands at the same time; one more is answered as unavailable. */
const MAX_CONCURRENT_REQUESTS = 512;
const HEARTBEAT_MS = 500;
/** Its handlers hold up no rebalance, so it need not wait for them. */
const REBALANCE_TIMEOUT_MS = 10_000;

export type AnyHandler = (request: unknown) => Promise<unknown>;

/**
 * The answering side of request–reply, for the subjects of one service; its replicas share the requests. A request is handed to its handler and committed at once, so a handler that takes
 * its time, or for ever, holds up nobody. At most once, as the asking side waits a bounded time anyway; a request that is past its deadline is not handled at all.
 */
export class RequestServer {
  private readonly consumer: SupervisedConsumer;
  private readonly inHand = new Set<Promise<void>>();

  constructor(
    connection: KafkaConnection,
    private readonly service: RequestService,
    private readonly handlers: ReadonlyMap<string, AnyHandler>,
    private readonly names: Names,
    private readonly publisher: Publisher,
    { sessionTimeoutMs }: ConsumerTuning,
  ) {
    const topic = requestTopic(service);
    this.consumer = new SupervisedConsumer({
      connection,
      topic: names.topic(topic),
      fromBeginning: true,
      config: {
        groupId: names.group(topic, 'handlers'),
        sessionTimeout: sessionTimeoutMs,
        heartbeatInterval: HEARTBEAT_MS,
        rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      },
      run: () => ({
        eachBatch: async ({ batch }) => {
          for (const message of batch.messages) this.take(message);
        },
      }),
    });
  }

  start(): void {
    this.consumer.start();
  }

  /** Takes no more, and answers those in hand, for as long as somebody waits for that. */
  async stop(): Promise<void> {
    await this.consumer.stop();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.all(this.inHand),
      new Promise((resolve) => (timer = setTimeout(resolve, DEFAULT_REQUEST_DEADLINE_MS))),
    ]);
    clearTimeout(timer);
  }

  cut(): void {
    this.consumer.cut();
  }

  private take(message: KafkaMessage): void {
    const request = readRequest(message);
    if (!request) {
      this.log().warn({ offset: message.offset }, 'not a request that can be answered');
      return;
    }
    const working = this.answer(request)
      .then((outcome) => outcome && this.reply(request, outcome))
      // Whoever asked learns it at its deadline.
      .catch((error: unknown) => this.log().warn({ err: error }, 'a reply could not be sent'))
      .finally(() => this.inHand.delete(working));
    this.inHand.add(working);
  }

  /** Nothing for a request that nobody waits for any more. */
  private async answer(request: RequestMessage): Promise<Outcome | undefined> {
    if (await this.isLate(request)) {
      expiredRequests.inc({ service: this.service });
      return undefined;
    }
    const { subject } = request;
    const handler = this.handlers.get(subject);
    if (!handler || this.inHand.size >= MAX_CONCURRENT_REQUESTS) {
      this.log().warn({ subject }, handler ? 'too many requests at the same time' : 'nobody answers this subject');
      return { unavailable: true };
    }
    try {
      return { reply: (await handler(request.request)) ?? null };
    } catch (error) {
      if (error instanceof RequestError) return { refusal: { code: error.code, message: error.message } };
      this.log().error({ err: error, subject }, 'a request handler failed');
      return { unavailable: true };
    }
  }

  private async isLate({ deadlineMs }: RequestMessage): Promise<boolean> {
    const { clock } = this.publisher;
    if ((clock.nowMs() ?? 0) <= deadlineMs) return false;
    // Refused only by a clock that was set just now, lest one wrong sample shut everybody out.
    if (clock.stale) await this.publisher.setClock(this.names.topic('replies'));
    return (clock.nowMs() ?? 0) > deadlineMs;
  }

  private async reply(request: RequestMessage, outcome: Outcome): Promise<void> {
    await this.publisher.send({ topic: this.names.topic('replies'), messages: [writeReply(request, outcome)] });
  }

  private log() {
    return logger('messaging').child({ service: this.service });
  }
}
