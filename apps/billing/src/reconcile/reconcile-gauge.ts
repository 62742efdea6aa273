import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { differences } from './metrics';
import { ReconcileRuns } from './runs';

/** Feeds the metric of the differences in the books. */
@Injectable()
export class ReconcileGauge implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stop: () => void = () => {};

  constructor(private readonly runs: ReconcileRuns) {}

  onApplicationBootstrap(): void {
    this.stop = differences.from(async () => [{ labels: {}, value: await this.runs.differences() }]);
  }

  beforeApplicationShutdown(): void {
    this.stop();
  }
}
