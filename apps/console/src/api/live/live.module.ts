import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { OperatorModule } from '../operator/operator.module';
import { UsageModule } from '../usage/usage.module';
import { LiveController } from './live.controller';
import { LiveStreams } from './live-streams';

/** Numbers that an open page renews by itself. */
@Module({
  imports: [AccessModule, UsageModule, OperatorModule],
  controllers: [LiveController],
  providers: [LiveStreams],
})
export class LiveModule {}
