import { Module } from '@nestjs/common';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { CredentialGuard } from './credential-guard';

const credentialGuard = {
  provide: CredentialGuard,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({ trustedProxies }: GatewayOptions) => new CredentialGuard(trustedProxies),
};

/** What both APIs of the public port share. */
@Module({ providers: [credentialGuard], exports: [CredentialGuard] })
export class AcceptModule {}
