import { Module } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { UsageEmitter } from './emitter';
import { Settlements } from './settlement';
import { UnbilledReports } from './unbilled-reports';

/** Made by a factory, because tests wait for other times. */
const unbilledReports = {
  provide: UnbilledReports,
  inject: [ServiceClient],
  useFactory: (services: ServiceClient) => new UnbilledReports(services),
};

@Module({ providers: [UsageEmitter, unbilledReports, Settlements], exports: [Settlements] })
export class SettleModule {}
