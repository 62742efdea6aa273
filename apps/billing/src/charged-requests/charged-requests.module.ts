import { Module } from '@nestjs/common';
import { ChargedRequestsController } from './charged-requests.controller';

@Module({ controllers: [ChargedRequestsController] })
export class ChargedRequestsModule {}
