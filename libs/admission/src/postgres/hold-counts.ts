import { holds } from '../admission-metrics';
import type { Connections } from './connections';
import { reportStuckHolds } from './stuck-holds';

/** Counting reads the whole hold table, so it does not run with every sweep. */
const COUNT_EVERY_MS = 5_000;

/** The number of holds for the metrics, counted by each process that sweeps. Also logs the holds that cannot end. */
export class HoldCounts {
  private nextAtMs = 0;

  constructor(private readonly connections: Connections) {}

  /** @param now the store's clock in a test; otherwise null */
  async refresh(now: number | null): Promise<void> {
    if (performance.now() < this.nextAtMs) return;
    this.nextAtMs = performance.now() + COUNT_EVERY_MS;
    const [row] = await this.connections.callInBackground({
      name: 'count_holds',
      text: `SELECT count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'settled') FROM hold`,
      values: [],
    });
    holds.set({ state: 'pending' }, Number(row![0]));
    holds.set({ state: 'settled' }, Number(row![1]));
    await reportStuckHolds(this.connections, now);
  }
}
