import { Module, type DynamicModule, type Type } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Messages } from '../messages';
import { AfterCommitPublisher } from '../outbox/after-commit-publisher';
import { Outbox } from './outbox';

/**
 * Publishes what a service commits: `Outbox`, and `AfterCommitPublisher` for what it makes of messages that are
 * delivered again until they are acknowledged.
 */
@Module({})
export class OutboxModule {
  /** For one module of the service: each call makes another outbox. `dataSource`: the token of its connections. */
  static of(service: string, dataSource: Type<DataSource>): DynamicModule {
    const parts = [Outbox, AfterCommitPublisher];
    const providers = parts.map((Part) => ({
      provide: Part,
      inject: [dataSource, Messages],
      useFactory: (own: DataSource, messages: Messages) => new Part(own, messages, { name: service }),
    }));
    return { module: OutboxModule, providers, exports: parts };
  }
}
