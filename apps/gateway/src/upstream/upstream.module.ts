import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/catalog.module';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { BackendReports } from './backend-reports';
import { Drains } from './drains';
import { DEFAULT_UPSTREAM_LIMITS } from './fleet/connections';
import { LostAddresses } from './lost-addresses';
import { ModelsInForce } from './models-in-force';
import { StreamWatch } from './stream/stream-watch';
import { Upstream } from './upstream';

const upstream = {
  provide: Upstream,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({ upstreamLimits }: GatewayOptions) => new Upstream({ ...DEFAULT_UPSTREAM_LIMITS, ...upstreamLimits }),
};

/** What runs beside the calls ends by its own hooks. The calls themselves end in the order of the inference module. */
@Module({
  imports: [CatalogModule],
  providers: [upstream, ModelsInForce, Drains, BackendReports, LostAddresses, StreamWatch],
  exports: [Upstream, StreamWatch],
})
export class UpstreamModule {}
