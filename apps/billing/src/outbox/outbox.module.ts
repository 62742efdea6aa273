import { Module } from '@nestjs/common';
import { AfterCommitPublisher, Messages } from '@tollgate/messaging';
import { Outbox } from '@tollgate/messaging/nest';
import { BillingDataSource } from '../database';

/** Publishes the balance updates and events that were committed with the books. */
const outbox = {
  provide: Outbox,
  inject: [BillingDataSource, Messages],
  useFactory: (books: BillingDataSource, messages: Messages) => new Outbox(books, messages, { name: 'billing' }),
};

/** The same for balance updates of charges that are delivered again until they are acknowledged. */
const afterCommit = {
  provide: AfterCommitPublisher,
  inject: [BillingDataSource, Messages],
  useFactory: (books: BillingDataSource, messages: Messages) =>
    new AfterCommitPublisher(books, messages, { name: 'billing' }),
};

@Module({ providers: [outbox, afterCommit], exports: [Outbox, AfterCommitPublisher] })
export class OutboxModule {}
