import { newId } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { useBilling } from '../testing/billing.fixture';
import { ReconcileRuns } from './runs';

const database = useTestDatabase();
describe('reconcile runs', () => {
  const billing = useBilling(database);

  describe('the latest reconcile run', () => {
    const latest = () => new ReconcileRuns(billing.dataSource, null as never).latest();

    it('is null before the first, and then the run that started last, whatever became of it', async () => {
      expect(await latest()).toBeNull();
      const progress = JSON.stringify({ events: 1, tenants: 2, differenceCount: 0 });
      const begin = async (minutesAgo: number, state: string) => {
        const id = newId('rec');
        await database.query(
          `INSERT INTO billing.reconcile_run (id, state, progress, reason, started_at)
         VALUES ($1, $2, $3, $4, now() - make_interval(mins => $5))`,
          [id, state, progress, state === 'failed' ? 'away' : null, minutesAgo],
        );
        return id;
      };
      const first = await begin(2, 'failed');
      expect(await latest()).toMatchObject({ id: first, state: 'failed', reason: 'away' });
      await begin(3, 'failed');
      expect(await latest()).toMatchObject({ id: first });
      const running = await begin(1, 'running');
      expect(await latest()).toMatchObject({ id: running, state: 'running', events: 1, tenants: 2 });
    });
  });

  it('no reconcile run has an id of another form, be it text that PostgreSQL cannot read', async () => {
    const runs = new ReconcileRuns(billing.dataSource, null as never);
    for (const id of ['x', '\0', `${newId('rec')}\0`, newId('ten'), newId('rec')])
      await expect(runs.get({ id })).rejects.toMatchObject({ code: 'not_found' });
  });
});
