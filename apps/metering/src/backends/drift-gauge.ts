import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { compareBackends } from './compare';
import { driftRatio, METRIC_HOURS, readings } from './drift-metric';

/** Feeds the metric of engine work beyond the books. */
@Injectable()
export class DriftGauge implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stop: () => void = () => {};

  constructor(private readonly dataSource: MeteringDataSource) {}

  onApplicationBootstrap(): void {
    this.stop = driftRatio.from(async () => {
      const { data } = await compareBackends(this.dataSource, { hours: METRIC_HOURS });
      return readings(data);
    });
  }

  beforeApplicationShutdown(): void {
    this.stop();
  }
}
