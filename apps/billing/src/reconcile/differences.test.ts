import { UnavailableError, type Difference } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { eventually, useTestDatabase } from '@tollgate/testing';
import type { BillingDataSource } from '../database';
import { useBilling } from '../testing/billing.fixture';
import type { Findings } from './findings';
import { differences } from './metrics';
import type { Reconciler } from './reconciler';
import { ReconcileRuns } from './runs';

const database = useTestDatabase();
const DIFFERENCE = {} as Difference;

/** A replica of billing, with the number of differences that its next run finds. Null: the run fails. */
function replica(dataSource: BillingDataSource) {
  let next: number | null = 0;
  const reconciler = {
    run: (findings: Findings) => {
      if (next === null) return Promise.reject(new UnavailableError('no result'));
      findings.add(Array.from({ length: next }, () => DIFFERENCE));
      return Promise.resolve();
    },
  } as Partial<Reconciler> as Reconciler;
  const runs = new ReconcileRuns(dataSource, reconciler);
  const run = async (found: number | null) => {
    next = found;
    const { id } = await runs.start();
    await eventually(async () => expect((await runs.get({ id })).state).not.toBe('running'));
  };
  return { runs, run };
}

describe('the differences in the metrics', () => {
  const billing = useBilling(database);
  let one: ReturnType<typeof replica>;
  let other: ReturnType<typeof replica>;
  beforeEach(async () => {
    await database.query('DELETE FROM billing.reconcile_run');
    [one, other] = [replica(billing.dataSource), replica(billing.dataSource)];
  });
  const shown = () => Promise.all([one.runs.differences(), other.runs.differences()]);
  const age = () => database.query(`UPDATE billing.reconcile_run SET started_at = started_at - interval '2 days'`);

  it('are those of the newest complete run, whichever replica ran it', async () => {
    expect(await shown()).toEqual([0, 0]);
    await one.run(2);
    expect(await shown()).toEqual([2, 2]);
    await other.run(null);
    expect(await shown()).toEqual([2, 2]);
    await other.run(0);
    expect(await shown()).toEqual([0, 0]);
  });

  it('stay until a later run is complete, however old the run is that found them', async () => {
    await one.run(1);
    await age();
    await other.run(null);
    expect(await shown()).toEqual([1, 1]);
    await other.run(0);
    expect(await shown()).toEqual([0, 0]);
    await age();
    await one.run(null);
    expect(await database.query('SELECT state FROM billing.reconcile_run ORDER BY state')).toEqual([
      { state: 'done' },
      { state: 'failed' },
    ]);
  });

  it('are read at each scrape', async () => {
    const stop = differences.from(() => one.runs.differences());
    try {
      const scraped = () => metrics.getSingleMetricAsString('tollgate_reconcile_differences');
      await one.run(3);
      expect(await scraped()).toMatch(/^tollgate_reconcile_differences 3$/m);
      await other.run(0);
      expect(await scraped()).toMatch(/^tollgate_reconcile_differences 0$/m);
    } finally {
      stop();
    }
  });
});
