import { Module, type DynamicModule, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Messages } from '../messages';
import { ServiceClient } from './service-client';
import { stopConsuming } from './stop-consuming';

/**
 * Provides the messages to all modules of a program, and manages their lifecycle. The hooks of a global module come
 * first:
 * 1. Every handler has been registered (`MessagesServer`), and every module has had its `onModuleInit`.
 * 2. The messages start before any `onApplicationBootstrap`, in which modules may begin to publish.
 * 3. At the end, consuming stops before any `beforeApplicationShutdown`, in which modules flush and can still publish.
 * The program that created the messages closes them, after the application.
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
