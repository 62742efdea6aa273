import { Module } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { Outbox } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';

/** Publishes the recorded charges. */
const outbox = {
  provide: Outbox,
  inject: [MeteringDataSource, Messages],
  useFactory: (charges: MeteringDataSource, messages: Messages) => new Outbox(charges, messages, { name: 'metering' }),
};

@Module({ providers: [outbox], exports: [Outbox] })
export class PublishModule {}
