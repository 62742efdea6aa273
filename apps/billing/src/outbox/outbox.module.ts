import { Module } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { Outbox } from '@tollgate/messaging/nest';
import { BillingDataSource } from '../database';

/** Publishes the balance updates and events that were committed with the books. */
const outbox = {
  provide: Outbox,
  inject: [BillingDataSource, Messages],
  useFactory: (books: BillingDataSource, messages: Messages) => new Outbox(books, messages, { name: 'billing' }),
};

@Module({ providers: [outbox], exports: [Outbox] })
export class OutboxModule {}
