import { Module } from '@nestjs/common';
import { BackendsController } from './backends.controller';
import { DrainedBackends } from './drained-backends';

@Module({ controllers: [BackendsController], providers: [DrainedBackends] })
export class BackendsModule {}
