import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { BackendsController } from './backends.controller';
import { DriftGauge } from './drift-gauge';
import { enginesInForce } from './engines';
import { OldHours } from './old-hours';
import { EngineSampler } from './sampler';

/** Null without a configuration, which names the engines. */
const sampler = {
  provide: EngineSampler,
  inject: [MeteringDataSource, METERING_OPTIONS],
  useFactory: (dataSource: MeteringDataSource, { config, simulatorUrl }: MeteringOptions) =>
    config
      ? new EngineSampler(
          dataSource,
          enginesInForce(() => config.current, simulatorUrl),
        )
      : null,
};

@Module({ controllers: [BackendsController], providers: [sampler, DriftGauge, OldHours] })
export class BackendsModule {}
