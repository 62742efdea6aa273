import { type DynamicModule, Module } from '@nestjs/common';
import { AdmissionClient, AdmissionStore } from '@tollgate/admission';
// Registers the metrics of connections, also where another module opens the ports.
import './accept/connection-limit';
import { InferenceModule } from './inference/inference.module';
import { ManagementModule } from './management/management.module';
import { DocsModule } from './openapi/docs.module';
import { GATEWAY_OPTIONS, type GatewayOptions } from './options';
import { PublicHooks } from './public/public-hooks';
import { PublicStop } from './public/public-stop';

/** The providers that all modules of the gateway share: the options, and the batched calls of the admission store. */
@Module({})
class GatewayGlobals {}

const admissionClient = {
  provide: AdmissionClient,
  inject: [AdmissionStore, GATEWAY_OPTIONS],
  useFactory: (store: AdmissionStore, { heartbeatIntervalMs }: GatewayOptions) =>
    new AdmissionClient(store, heartbeatIntervalMs === undefined ? {} : { heartbeatIntervalMs }),
};

/**
 * Both public surfaces, served by `createPublicApp`. Needs MessagesModule, AdmissionStore, CredentialStore and
 * ConfigSource from global modules.
 */
@Module({ imports: [InferenceModule, ManagementModule, DocsModule], providers: [PublicHooks, PublicStop] })
export class GatewayModule {
  static register(options: GatewayOptions = {}): DynamicModule {
    const providers = [{ provide: GATEWAY_OPTIONS, useValue: options }, admissionClient];
    const exports = [GATEWAY_OPTIONS, AdmissionClient];
    return { module: GatewayModule, imports: [{ module: GatewayGlobals, global: true, providers, exports }] };
  }
}
