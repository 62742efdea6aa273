import { Module } from '@nestjs/common';
import { DEFAULT_MAX_BODY_MIB, GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { Admitter } from './admit';
import { BalanceUpdatesModule } from './balance-updates.module';
import { BodyMemory, DEFAULT_BODY_MEMORY_MIB } from './body-memory';
import { RefusedKeys } from './refused-keys';
import { WastedRequests } from './wasted-requests';

const MIB = 1024 * 1024;

const bodyMemory = {
  provide: BodyMemory,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({ bodyMemoryMib = DEFAULT_BODY_MEMORY_MIB, maxBodyMib = DEFAULT_MAX_BODY_MIB }: GatewayOptions) =>
    new BodyMemory({ maxBytes: bodyMemoryMib * MIB, maxBytesPerBody: maxBodyMib * MIB }),
};

@Module({
  imports: [BalanceUpdatesModule],
  providers: [Admitter, bodyMemory, WastedRequests, RefusedKeys],
  exports: [Admitter, BodyMemory, WastedRequests, RefusedKeys],
})
export class AdmitModule {}
