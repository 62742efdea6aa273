import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { openRejected } from '../record/rejected';
import { openEvents } from './metrics';

/** Feeds the metric of quarantined events. */
@Injectable()
export class OpenEventsGauge implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stop: () => void = () => {};

  constructor(private readonly dataSource: MeteringDataSource) {}

  onApplicationBootstrap(): void {
    this.stop = openEvents.from(async () => [{ labels: {}, value: await openRejected(this.dataSource) }]);
  }

  beforeApplicationShutdown(): void {
    this.stop();
  }
}
