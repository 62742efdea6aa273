import { Module } from '@nestjs/common';
import { BalanceUpdateOutbox } from './balance-update-outbox';

@Module({ providers: [BalanceUpdateOutbox], exports: [BalanceUpdateOutbox] })
export class OutboxModule {}
