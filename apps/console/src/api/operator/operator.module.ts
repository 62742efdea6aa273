import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { FleetStates } from './fleet-states';
import { OperatorController } from './operator.controller';

/** The pages of operators: tenants, money, the fleet, and the proof of the books. */
@Module({
  imports: [AccessModule],
  controllers: [OperatorController],
  providers: [FleetStates],
  exports: [FleetStates],
})
export class OperatorModule {}
