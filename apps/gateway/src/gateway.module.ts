import { type DynamicModule, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { AdmissionClient, AdmissionStore } from '@tollgate/admission';
import { CredentialStore } from '@tollgate/credentials';
import { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
// Registers the metrics of connections, also where another module opens the ports.
import './accept/connection-limit';
import { Admitter } from './admit/admit';
import { BodyMemory, DEFAULT_BODY_MEMORY_MIB } from './admit/body-memory';
import { BalanceUpdateController } from './admit/balance-update.controller';
import { RefusedKeys } from './admit/refused-keys';
import { WastedRequests } from './admit/wasted-requests';
import { Authenticator } from './authenticate/authenticate';
import { Catalog } from './catalog/catalog';
import { TokenizerThrottle } from './prompt/tokenizer-throttle';
import { TokenizerLoader } from './prompt/tokenizer-loader';
import { DocsModule } from './openapi/docs.module';
import { BodyReader } from './inference/body/body-reader';
import { InFlight } from './inference/in-flight';
import { Intake } from './inference/intake';
import { Pipeline } from './inference/pipeline';
import { Settlements } from './settle/settlement';
import type { Stages } from './inference/stages';
import { ManagementModule } from './management/management.module';
import { DEFAULT_UPSTREAM_LIMITS, type UpstreamLimits } from './upstream/connections';
import { StreamWatch } from './upstream/stream-watch';
import { Upstream } from './upstream/upstream';
import { UsageEmitter } from './settle/emitter';
import { UnbilledReports } from './settle/unbilled-reports';

export interface GatewayOptions {
  /** Base URL (ends in /v1) that the backend url "simulator:" stands for. */
  simulatorUrl?: string;
  /** Only the limits that differ from the defaults. */
  upstreamLimits?: Partial<UpstreamLimits>;
  /** Memory for the bodies of all requests in progress. */
  bodyMemoryMib?: number;
  /** For tests, whose leases are shorter. */
  signOfLifeIntervalMs?: number;
}

/** Nothing listens there. A model that names "simulator:" without a simulator gets a 502. */
const NO_SIMULATOR = 'http://127.0.0.1:9/v1';

/**
 * Builds the stages, and closes them in the order of their dependencies. Running requests have ended by then
 * (InFlight.drain).
 */
@Injectable()
class GatewayStages implements OnApplicationShutdown {
  readonly stages: Stages;

  constructor(
    store: AdmissionStore,
    credentials: CredentialStore,
    config: ConfigSource,
    messages: Messages,
    services: ServiceClient,
    options: GatewayOptions,
  ) {
    const { signOfLifeIntervalMs } = options;
    const admission = new AdmissionClient(store, signOfLifeIntervalMs === undefined ? {} : { signOfLifeIntervalMs });
    const catalog = new Catalog(config, options.simulatorUrl ?? NO_SIMULATOR);
    const admitter = new Admitter(admission);
    const { bodyMemoryMib = DEFAULT_BODY_MEMORY_MIB } = options;
    const memory = new BodyMemory({ maxBytes: bodyMemoryMib * 1024 * 1024 });
    this.stages = {
      authenticator: new Authenticator(credentials, config),
      intake: new Intake(admitter, catalog, memory, new WastedRequests(), new RefusedKeys()),
      catalog,
      bodies: new BodyReader(catalog),
      admitter,
      admission,
      upstream: new Upstream({ ...DEFAULT_UPSTREAM_LIMITS, ...options.upstreamLimits }),
      streams: new StreamWatch(),
      counting: new TokenizerThrottle(),
      settlements: new Settlements(admission, new UsageEmitter(messages), new UnbilledReports(services)),
    };
  }

  async onApplicationShutdown(): Promise<void> {
    const { upstream, streams, admission, settlements, bodies } = this.stages;
    await Promise.all([upstream.close(), bodies.close()]);
    streams.stop();
    await settlements.flush();
    await admission.close();
  }
}

/**
 * Both public surfaces, served by `createPublicApp`. Needs MessagesModule, AdmissionStore, CredentialStore and
 * ConfigSource from global modules.
 */
@Module({})
export class GatewayModule {
  static register(options: GatewayOptions = {}): DynamicModule {
    const stages = {
      provide: GatewayStages,
      inject: [AdmissionStore, CredentialStore, ConfigSource, Messages, ServiceClient],
      useFactory: (
        store: AdmissionStore,
        credentials: CredentialStore,
        config: ConfigSource,
        messages: Messages,
        services: ServiceClient,
      ) => new GatewayStages(store, credentials, config, messages, services, options),
    };
    const pipeline = {
      provide: Pipeline,
      inject: [GatewayStages],
      useFactory: ({ stages }: GatewayStages) => new Pipeline(stages),
    };
    const settlements = {
      provide: Settlements,
      inject: [GatewayStages],
      useFactory: ({ stages }: GatewayStages) => stages.settlements,
    };
    return {
      module: GatewayModule,
      imports: [ManagementModule, DocsModule],
      controllers: [BalanceUpdateController],
      providers: [stages, pipeline, settlements, InFlight, TokenizerLoader],
      exports: [Pipeline, Settlements, InFlight],
    };
  }
}
