import { Module, type DynamicModule, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Messages } from '../messages';
import { ServiceClient } from './service-client';
import { stopConsuming } from './stop-consuming';

/**
 * Gives all modules of a program its messages, and carries their life. A global module's hooks come first:
 *
 * 1. every handler has been registered (`MessagesServer`), and every module has had its `onModuleInit`;
 * 2. the messages start, before any `onApplicationBootstrap`: what publishes by itself starts in that hook;
 * 3. at the end consuming stops, before any `beforeApplicationShutdown`: modules flush in that hook, and can publish.
 *
 * Whoever made the messages closes them, after the application.
 */
@Module({})
export class MessagesModule implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(private readonly messages: Messages) {}

  static of(messages: Messages): DynamicModule {
    const providers = [{ provide: Messages, useValue: messages }, ServiceClient];
    return { module: MessagesModule, global: true, providers, exports: [Messages, ServiceClient] };
  }

  onApplicationBootstrap(): Promise<void> {
    return this.messages.start();
  }

  onModuleDestroy(): Promise<void> {
    return stopConsuming(this.messages);
  }
}
