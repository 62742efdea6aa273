import { Module } from '@nestjs/common';
import { AfterCommitPublisher, Messages } from '@tollgate/messaging';
import { Outbox } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';

/** Publishes the recorded charges. */
const outbox = {
  provide: Outbox,
  inject: [MeteringDataSource, Messages],
  useFactory: (charges: MeteringDataSource, messages: Messages) => new Outbox(charges, messages, { name: 'metering' }),
};

/** The same for charges of events that are delivered again until they are acknowledged. */
const afterCommit = {
  provide: AfterCommitPublisher,
  inject: [MeteringDataSource, Messages],
  useFactory: (charges: MeteringDataSource, messages: Messages) =>
    new AfterCommitPublisher(charges, messages, { name: 'metering' }),
};

@Module({ providers: [outbox, afterCommit], exports: [Outbox, AfterCommitPublisher] })
export class PublishModule {}
