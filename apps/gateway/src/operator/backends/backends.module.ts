import { Module } from '@nestjs/common';
import { BackendsController } from './backends.controller';
import { ConfigController } from './config.controller';

/** The backends of the configuration in force, and the check of another configuration. */
@Module({ controllers: [BackendsController, ConfigController] })
export class BackendsModule {}
