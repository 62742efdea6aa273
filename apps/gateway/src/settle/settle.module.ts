import { Module } from '@nestjs/common';
import { UsageEmitter } from './emitter';
import { Settlements } from './settlement';
import { UnbilledReports } from './unbilled-reports';

@Module({ providers: [UsageEmitter, UnbilledReports, Settlements], exports: [Settlements] })
export class SettleModule {}
