import { Module } from '@nestjs/common';
import { RefusalsController } from './refusals.controller';

/** Keeps what gateways refused, by hour. */
@Module({ controllers: [RefusalsController] })
export class RefusalsModule {}
