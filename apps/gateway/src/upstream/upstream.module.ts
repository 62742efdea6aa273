import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { ConfigSource } from '@tollgate/runtime';
import { Catalog } from '../catalog/catalog';
import { CatalogModule } from '../catalog/catalog.module';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { DEFAULT_UPSTREAM_LIMITS } from './fleet/connections';
import { BackendReports } from './backend-reports';
import { Drains } from './drains';
import { HealthChecks } from './fleet/health-checks';
import { LostAddresses } from './lost-addresses';
import { StreamWatch } from './stream/stream-watch';
import { Upstream } from './upstream';

const upstream = {
  provide: Upstream,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({ upstreamLimits }: GatewayOptions) => new Upstream({ ...DEFAULT_UPSTREAM_LIMITS, ...upstreamLimits }),
};

const healthChecks = {
  provide: HealthChecks,
  inject: [Upstream, Catalog, ConfigSource],
  useFactory: (calls: Upstream, catalog: Catalog, config: ConfigSource) => {
    const checks = new HealthChecks(calls.fleet);
    const follow = () => {
      const models = catalog.all(null);
      calls.follow(models);
      checks.follow(models);
    };
    follow();
    config.onChange(follow);
    return checks;
  },
};

@Module({
  imports: [CatalogModule],
  providers: [upstream, healthChecks, Drains, BackendReports, LostAddresses, StreamWatch],
  exports: [Upstream, StreamWatch],
})
export class UpstreamModule implements OnApplicationShutdown {
  constructor(
    private readonly health: HealthChecks,
    private readonly drains: Drains,
    private readonly reports: BackendReports,
    private readonly lostAddresses: LostAddresses,
  ) {}

  /** What runs beside the calls. The calls themselves end in the order of the inference module. */
  onApplicationShutdown(): void {
    this.health.close();
    this.drains.close();
    this.reports.close();
    this.lostAddresses.close();
  }
}
