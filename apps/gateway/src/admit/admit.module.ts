import { Module } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { DEFAULT_BODY_MEMORY_MIB, DEFAULT_MAX_BODY_MIB, GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { Admitter } from './admit';
import { BalanceUpdatesModule } from './balance-updates.module';
import { ARRIVING_ANSWER_LIMITS, BodyMemory } from './body-memory';
import { ExpectedEnds } from './expected-ends';
import { RefusedKeys } from './refused-keys';
import { WastedRequests } from './wasted-requests';

const MIB = 1024 * 1024;

const bodyMemory = {
  provide: BodyMemory,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({
    bodyMemoryMib = DEFAULT_BODY_MEMORY_MIB,
    maxBodyMib = DEFAULT_MAX_BODY_MIB,
    arrivingAnswers = ARRIVING_ANSWER_LIMITS,
  }: GatewayOptions) =>
    new BodyMemory({
      maxBytes: bodyMemoryMib * MIB,
      maxBytesPerBody: maxBodyMib * MIB,
      arriving: arrivingAnswers,
    }),
};

/** Made by a factory, because tests give it a part of the client. */
const expectedEnds = {
  provide: ExpectedEnds,
  inject: [AdmissionClient],
  useFactory: (client: AdmissionClient) => new ExpectedEnds(client),
};

@Module({
  imports: [BalanceUpdatesModule],
  providers: [Admitter, expectedEnds, bodyMemory, WastedRequests, RefusedKeys],
  exports: [Admitter, BodyMemory, WastedRequests, RefusedKeys],
})
export class AdmitModule {}
