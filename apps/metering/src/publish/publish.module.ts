import { Module } from '@nestjs/common';
import { ChargeOutbox } from './charge-outbox';

@Module({ providers: [ChargeOutbox], exports: [ChargeOutbox] })
export class PublishModule {}
