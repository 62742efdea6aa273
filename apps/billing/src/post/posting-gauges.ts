import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { BillingDataSource } from '../database';
import { overdueSeconds, uncoveredSeconds } from '../ledger/books-store';
import { postingOverdue, uncovered } from './metrics';

/** Feeds the metrics of late postings and of usage that waits for credit. */
@Injectable()
export class PostingGauges implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stops: (() => void)[] = [];

  constructor(private readonly dataSource: BillingDataSource) {}

  onApplicationBootstrap(): void {
    const { manager } = this.dataSource;
    this.stops = [
      postingOverdue.from(async () => [{ labels: {}, value: await overdueSeconds(manager) }]),
      uncovered.from(async () => [{ labels: {}, value: await uncoveredSeconds(manager) }]),
    ];
  }

  beforeApplicationShutdown(): void {
    for (const stop of this.stops) stop();
  }
}
