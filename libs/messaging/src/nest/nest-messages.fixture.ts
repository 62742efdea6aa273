import { Controller, type INestMicroservice, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { GroupOf, ReplyOf, RequestOf, Subject, Topic, TopicTypes } from '@tollgate/contracts';
import { firstValueFrom, lastValueFrom } from 'rxjs';
import {
  Messages,
  type BatchHandler,
  type RequestHandler,
  type RequestOptions,
  type MessageValidator,
} from '../messages';
import type { MessagesStore } from '../messages-store.fixture';
import { EventPattern, MessagePattern } from './patterns';
import { MessagesModule } from './messages.module';
import { MessagesServer } from './messages-server';
import { ServiceClient } from './service-client';

/**
 * The seam as the services use it: each handler is a method of a controller, Nest binds it to `MessagesServer` at the
 * start, and requests and events go through `ServiceClient`. The conformance suites thus cover Nest's way too.
 */
class NestMessages extends Messages {
  private readonly controllers: Type[] = [];
  private readonly client: ServiceClient;
  private app: INestMicroservice | undefined;

  /** @param rehearsal never started: a seam rejects a wrong registration at once, and Nest registers later */
  constructor(
    readonly inner: Messages,
    private readonly rehearsal: Messages,
  ) {
    super();
    this.client = new ServiceClient(inner);
  }

  consume<T extends Topic>(
    topic: T,
    group: string,
    handler: BatchHandler<TopicTypes[T]>,
    options: { validate?: MessageValidator } = {},
  ): void {
    (this.app ? this.inner : this.rehearsal).consume(topic, group, handler, options);
    @Controller()
    class Consumer {
      // The seam checks it at run time.
      @EventPattern(topic, group as GroupOf<T>, options)
      consume(batch: readonly TopicTypes[T][]): Promise<void> {
        return handler(batch);
      }
    }
    this.controllers.push(Consumer);
  }

  handle<S extends Subject>(subject: S, handler: RequestHandler<S>): void {
    (this.app ? this.inner : this.rehearsal).handle(subject, handler);
    @Controller()
    class Answerer {
      @MessagePattern(subject)
      answer(request: RequestOf<S>): Promise<ReplyOf<S>> {
        return handler(request);
      }
    }
    this.controllers.push(Answerer);
  }

  async start(): Promise<void> {
    this.app = await NestFactory.createMicroservice(
      { module: class Service {}, imports: [MessagesModule.of(this.inner)], controllers: this.controllers },
      { strategy: new MessagesServer(this.inner), logger: false, abortOnError: false },
    );
    await this.app.listen();
  }

  request<S extends Subject>(subject: S, request: RequestOf<S>, options?: RequestOptions): Promise<ReplyOf<S>> {
    // Without a deadline, requests go as Nest sends them. Both ways must pass the suite.
    return options
      ? this.client.request(subject, request, options)
      : firstValueFrom(this.client.send(subject, request));
  }

  async publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void> {
    await lastValueFrom(this.client.emit(topic, messages), { defaultValue: undefined });
  }

  async stopConsuming(): Promise<void> {
    await this.app?.close();
  }

  async close(): Promise<void> {
    await this.app?.close();
    await Promise.all([this.inner.close(), this.rehearsal.close()]);
  }
}

/** The same store. Its instances are reached through Nest. */
export async function throughNest(opening: Promise<MessagesStore>): Promise<MessagesStore> {
  const store = await opening;
  return {
    open: () => new NestMessages(store.open(), store.open()),
    spawnConsumer: (handled) => store.spawnConsumer(handled),
    cut: (messages) => store.cut(messages && (messages as NestMessages).inner),
    publishRaw: (topic, value) => store.publishRaw(topic, value),
    dead: (topic, group) => store.dead(topic, group),
    close: () => store.close(),
  };
}
