import { Module } from '@nestjs/common';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { DEFAULT_UPSTREAM_LIMITS } from './connections';
import { StreamWatch } from './stream-watch';
import { Upstream } from './upstream';

const upstream = {
  provide: Upstream,
  inject: [GATEWAY_OPTIONS],
  useFactory: ({ upstreamLimits }: GatewayOptions) => new Upstream({ ...DEFAULT_UPSTREAM_LIMITS, ...upstreamLimits }),
};

@Module({ providers: [upstream, StreamWatch], exports: [Upstream, StreamWatch] })
export class UpstreamModule {}
