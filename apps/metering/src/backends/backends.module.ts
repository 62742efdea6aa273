import { Module } from '@nestjs/common';
import { whileRunning } from '@tollgate/runtime';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { BackendsController } from './backends.controller';
import { compareBackends } from './compare';
import { driftRatio, METRIC_HOURS, readings } from './drift-metric';
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

/** Engine work beyond the books. */
const driftGauge = whileRunning([MeteringDataSource], (dataSource) =>
  driftRatio.from(async () => readings((await compareBackends(dataSource, { hours: METRIC_HOURS })).data)),
);

@Module({ controllers: [BackendsController], providers: [sampler, driftGauge, OldHours] })
export class BackendsModule {}
