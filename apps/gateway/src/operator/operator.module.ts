import { type DynamicModule, Module } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource, Health, ProbeAccess } from '@tollgate/runtime';
import { AccessModule } from './access/access.module';
import { BackendsModule } from './backends/backends.module';
import { LOOKS, type Looks } from './explain/explain.controller';
import { ExplainModule } from './explain/explain.module';
import { KeysModule } from './keys/keys.module';
import { MoneyModule } from './money/money.module';
import { OpenApiController } from './port/open-api.controller';
import { OPERATOR_SECRETS, OperatorAuthentication } from './port/operator-authentication';
import { ProbesController } from './port/probes.controller';
import { TenantLookup } from './tenant-lookup';
import { TenantsModule } from './tenants/tenants.module';
import { OperatorUnknownRouteController } from './port/unknown-route.controller';
import { UsageModule } from './usage/usage.module';

/** The services, the configuration and the store that the operator API asks. The program starts and closes them. */
export interface OperatorServices {
  messages: Messages;
  config: ConfigSource;
  admission: Looks;
}

export interface OperatorAccess {
  /** The accepted bearer tokens: the secret, and the former one while callers change to it. */
  secrets: readonly string[];
  /** Answers /readyz. */
  health: Health;
  /** The bearer tokens that /metrics accepts. None: it is open. */
  metricsTokens?: readonly string[];
}

/** What all modules of the operator API share. */
@Module({})
class OperatorGlobals {}

/** The operator API, served by `createOperatorApp`: a module for each of its topics, the probes and the document. */
@Module({
  imports: [TenantsModule, KeysModule, MoneyModule, UsageModule, ExplainModule, BackendsModule, AccessModule],
  controllers: [OpenApiController, ProbesController, OperatorUnknownRouteController],
})
export class OperatorModule {
  static register(
    { messages, config, admission }: OperatorServices,
    { secrets, health, metricsTokens = [] }: OperatorAccess,
  ): DynamicModule {
    const values = [
      { provide: Messages, useValue: messages },
      { provide: ConfigSource, useValue: config },
      { provide: LOOKS, useValue: admission },
      { provide: OPERATOR_SECRETS, useValue: secrets },
      { provide: Health, useValue: health },
      { provide: ProbeAccess, useValue: new ProbeAccess(metricsTokens) },
    ];
    const providers = [...values, ServiceClient, OperatorAuthentication, TenantLookup];
    const exports = [ConfigSource, LOOKS, Health, ProbeAccess, ServiceClient, OperatorAuthentication, TenantLookup];
    return { module: OperatorModule, imports: [{ module: OperatorGlobals, global: true, providers, exports }] };
  }
}
