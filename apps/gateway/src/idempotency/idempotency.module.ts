import { Module } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { IdempotencyKeys } from './idempotency-keys';

const idempotencyKeys = {
  provide: IdempotencyKeys,
  inject: [AdmissionClient, GATEWAY_OPTIONS],
  useFactory: (admission: AdmissionClient, { idempotency }: GatewayOptions) =>
    new IdempotencyKeys(admission, idempotency),
};

@Module({ providers: [idempotencyKeys], exports: [IdempotencyKeys] })
export class IdempotencyModule {}
