import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ConfigSource } from '@tollgate/runtime';
import { Catalog } from '../catalog/catalog';
import { HealthChecks } from './fleet/health-checks';
import { Upstream } from './upstream';

/** Tells the fleet and its health checks which models are in force, at the start and after each change. */
@Injectable()
export class ModelsInForce implements OnModuleInit, OnApplicationShutdown {
  private readonly checks: HealthChecks;

  constructor(
    private readonly upstream: Upstream,
    private readonly catalog: Catalog,
    private readonly config: ConfigSource,
  ) {
    this.checks = new HealthChecks(upstream.fleet);
  }

  onModuleInit(): void {
    this.follow();
    this.config.onChange(() => this.follow());
  }

  onApplicationShutdown(): void {
    this.checks.close();
  }

  private follow(): void {
    const models = this.catalog.all(null);
    this.upstream.follow(models);
    this.checks.follow(models);
  }
}
