import { Module } from '@nestjs/common';
import { ConfigSource } from '@tollgate/runtime';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { Catalog } from './catalog';

/** Nothing listens there: a configuration that names "simulator:" where there is none gets a 502. */
const NO_SIMULATOR = 'http://127.0.0.1:9/v1';

const catalog = {
  provide: Catalog,
  inject: [ConfigSource, GATEWAY_OPTIONS],
  useFactory: (config: ConfigSource, { simulatorUrl = NO_SIMULATOR }: GatewayOptions) =>
    new Catalog(config, simulatorUrl),
};

@Module({ providers: [catalog], exports: [Catalog] })
export class CatalogModule {}
