import { Module } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { Admitter } from './admit';
import { BalanceUpdateController } from './balance-update.controller';
import { BodyMemory, DEFAULT_BODY_MEMORY_MIB } from './body-memory';
import { RefusedKeys } from './refused-keys';
import { WastedRequests } from './wasted-requests';

const admitter = {
  provide: Admitter,
  inject: [AdmissionClient],
  useFactory: (client: AdmissionClient) => new Admitter(client),
};

const bodyMemory = {
  provide: BodyMemory,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({ bodyMemoryMib = DEFAULT_BODY_MEMORY_MIB }: GatewayOptions) =>
    new BodyMemory({ maxBytes: bodyMemoryMib * 1024 * 1024 }),
};

@Module({
  controllers: [BalanceUpdateController],
  providers: [admitter, bodyMemory, WastedRequests, RefusedKeys],
  exports: [Admitter, BodyMemory, WastedRequests, RefusedKeys],
})
export class AdmitModule {}
