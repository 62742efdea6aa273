import { Module } from '@nestjs/common';
import { RefusalsController } from './refusals.controller';

/** Keeps what gateways refused, by hour, and some of it one by one. */
@Module({ controllers: [RefusalsController] })
export class RefusalsModule {}
