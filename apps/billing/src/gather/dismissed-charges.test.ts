import { newId, type Charge } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { openRejected } from './rejected';

// Real: PostgreSQL.
const database = useTestDatabase();
describe('dismissed charges', () => {
  const billing = useBilling(database, { postingIntervalMs: 60_000 });

  /** As metering sends it for a dismissed event. */
  const release = (id: string, tenantId: string): Charge => ({
    ...{ id, tenantId, keyId: 'none', costNanos: '0', endedAt: new Date().toISOString(), late: true, dismissed: true },
  });
  const dismiss = ({ id }: Charge) =>
    database.query(`UPDATE billing.rejected_charge SET dismissed_at = now() WHERE data LIKE '%' || $1 || '%'`, [id]);
  const released = async (tenantId: string) => (await billing.updates(tenantId)).flatMap(({ releases }) => releases);
  const late = (one: Charge): Charge => ({ ...one, late: true });

  describe('the release of a dismissed event', () => {
    it('ends the hold at each repeat, books nothing, and makes no new version', async () => {
      const tenantId = await billing.tenant(10);
      const id = newId('req');
      for (let times = 1; times <= 2; times++)
        expect(await billing.gatherer.gather([release(id, tenantId)])).toMatchObject({
          ...{ gathered: 0, repeated: 1, rejected: 0, dueInMs: null },
        });
      expect(await released(tenantId)).toEqual([id, id]);
      expect((await billing.updates(tenantId)).map(({ version }) => version)).toEqual(['1', '1', '1']);
      await expectBooksToProve(billing, []);
      expect(await openRejected(billing.dataSource.manager)).toBe(0);
    });

    it('changes nothing of a charge of the same id, in any order and in one batch', async () => {
      const tenantId = await billing.tenant();
      const [first, second, third, fourth] = Array.from({ length: 4 }, () => charge(tenantId, CENT));
      const ended = (one: Charge) => release(one.id, tenantId);
      await billing.gatherer.gather([first!]);
      await billing.gatherer.gather([ended(first!), ended(second!)]);
      await billing.gatherer.gather([second!, ended(third!), third!, fourth!, ended(fourth!)]);
      await expectBooksToProve(billing, [first!, second!, third!, fourth!]);
      expect(await openRejected(billing.dataSource.manager)).toBe(0);
    });

    it('of a request that another tenant was charged for is quarantined', async () => {
      const [tenantId, other] = [await billing.tenant(), await billing.tenant()];
      const one = charge(tenantId, CENT);
      await billing.gatherer.gather([one]);
      expect(await billing.gatherer.gather([release(one.id, other)])).toMatchObject({ rejected: 1 });
      expect(await released(other)).toEqual([]);
      await dismiss(one);
    });

    it('is taken while the books of its tenant refuse charges', async () => {
      const tenantId = await billing.tenant();
      await billing.gatherer.gather([charge(tenantId, CENT)]);
      await database.query('UPDATE billing.tenant_month SET last_seq = 0 WHERE tenant_id = $1', [tenantId]);
      const [refused, id] = [charge(tenantId, CENT), newId('req')];
      expect(await billing.gatherer.gather([refused, release(id, tenantId)])).toMatchObject({
        repeated: 1,
        rejected: 1,
      });
      expect(await released(tenantId)).toContain(id);

      // A dismissal does not keep the charge of a recorded event out of the books.
      await dismiss(refused);
      await billing.gatherer.gather([refused]);
      expect(await released(tenantId)).not.toContain(refused.id);
      await database.query('UPDATE billing.tenant_month SET last_seq = 1 WHERE tenant_id = $1', [tenantId]);
      expect(await billing.gatherer.gather([refused])).toMatchObject({ gathered: 1 });
      expect(await released(tenantId)).toContain(refused.id);
    });
  });

  describe('a quarantined charge of a retired month', () => {
    it('keeps its hold until it is dismissed; then each repeat releases it, and nothing is booked', async () => {
      const tenantId = await billing.tenant();
      const [dismissed, open] = [late(charge(tenantId, CENT)), late(charge(tenantId, CENT))];
      expect(await billing.gatherer.gather([dismissed, open])).toMatchObject({ repeated: 0, rejected: 2 });
      expect(await released(tenantId)).toEqual([]);
      await dismiss(dismissed);
      for (let times = 1; times <= 2; times++)
        expect(await billing.gatherer.gather([dismissed, open])).toMatchObject({
          gathered: 0,
          repeated: 1,
          rejected: 1,
        });
      expect(await released(tenantId)).toEqual([dismissed.id, dismissed.id]);
      expect(await openRejected(billing.dataSource.manager)).toBe(1);
      await dismiss(open);
    });
  });

  it('the dismissal of a charge that differs from the booked one counts for its tenant only', async () => {
    const [tenantId, other] = [await billing.tenant(), await billing.tenant()];
    const first = charge(tenantId, CENT);
    const changed = { ...first, costNanos: '1' };
    await billing.gatherer.gather([first]);
    await billing.gatherer.gather([changed]);
    await dismiss(changed);
    expect(await billing.gatherer.gather([changed])).toMatchObject({ repeated: 1, rejected: 0 });
    expect(await billing.gatherer.gather([{ ...changed, tenantId: other }])).toMatchObject({ rejected: 1 });
    expect(await released(other)).toEqual([]);
  });
});
