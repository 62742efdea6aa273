import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { FleetStates } from '../operator/fleet-states';
import { LiveController } from './live.controller';
import { LiveStreams } from './live-streams';
import { OperatorController } from '../operator/operator.controller';
import { Overviews } from '../usage/overviews';
import { UsageController } from '../usage/usage.controller';

/** Numbers that an open page renews by itself, and the pages that begin with them. */
@Module({
  imports: [AccessModule],
  controllers: [UsageController, OperatorController, LiveController],
  providers: [FleetStates, LiveStreams, Overviews],
})
export class LiveModule {}
