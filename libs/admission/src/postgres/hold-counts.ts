import { holds } from '../admission-metrics';
import type { Connections } from './connections';

/** It reads the hold table as a whole, so not with each sweep. */
const COUNT_EVERY_MS = 5_000;

/** How many holds there are, for the metrics: counted by whoever sweeps. */
export class HoldCounts {
  private nextAtMs = 0;

  constructor(private readonly connections: Connections) {}

  async refresh(): Promise<void> {
    if (performance.now() < this.nextAtMs) return;
    this.nextAtMs = performance.now() + COUNT_EVERY_MS;
    const [row] = await this.connections.callInBackground({
      name: 'count_holds',
      text: `SELECT count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'settled') FROM hold`,
      values: [],
    });
    holds.set({ state: 'pending' }, Number(row![0]));
    holds.set({ state: 'settled' }, Number(row![1]));
  }
}
