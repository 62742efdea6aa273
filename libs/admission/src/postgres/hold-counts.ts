import { logCapped, logger } from '@tollgate/runtime';
import { holds } from '../admission-metrics';
import type { Connections } from './connections';

/** Counting reads the whole hold table, so it does not run with every sweep. */
const COUNT_EVERY_MS = 5_000;
/** Holds that cannot end, named at a time. */
const MAX_NAMED = 20;

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
    await this.reportStuck(now);
  }

  /** Pending holds that no sweep can end (`can_expire`). They keep the credit of their tenants. */
  private async reportStuck(now: number | null): Promise<void> {
    const stuck = await this.connections.callInBackground({
      name: 'stuck_holds',
      text: `SELECT tenant_id, id FROM hold
             WHERE unconfirmed_since_ms IS NULL AND state = 'pending' AND deadline_ms <= now_us($1) / 1000
               AND NOT can_expire(hold)
             LIMIT $2`,
      values: [now, MAX_NAMED],
    });
    const message =
      'a hold cannot expire, and keeps its credit, because no usage event can be made of its row: mend or delete the ' +
      'row, then tollgate tenant repair';
    for (const [tenantId, holdId] of stuck) logCapped(logger('admission'), 'error', { tenantId, holdId }, message);
  }
}
