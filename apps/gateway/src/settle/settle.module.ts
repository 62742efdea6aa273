import { Module } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { UsageEmitter } from './emitter';
import { Settlements } from './settlement';
import { UnbilledReports } from './unbilled-reports';

const emitter = {
  provide: UsageEmitter,
  inject: [Messages],
  useFactory: (messages: Messages) => new UsageEmitter(messages),
};

const unbilledReports = {
  provide: UnbilledReports,
  inject: [ServiceClient],
  useFactory: (services: ServiceClient) => new UnbilledReports(services),
};

const settlements = {
  provide: Settlements,
  inject: [AdmissionClient, UsageEmitter, UnbilledReports],
  useFactory: (...parts: ConstructorParameters<typeof Settlements>) => new Settlements(...parts),
};

@Module({ providers: [emitter, unbilledReports, settlements], exports: [Settlements] })
export class SettleModule {}
