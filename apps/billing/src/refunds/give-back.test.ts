import { PostgresAdmissionStore } from '@tollgate/admission';
import { newId } from '@tollgate/contracts';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { CENT } from '../testing/billing.fixture';
import { useMoneyOut } from './money-out.fixture';

const database = useTestDatabase();

describe('withdrawals that nobody booked', () => {
  const open = (url: string) => new PostgresAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS });
  const trial = useMoneyOut(database, open);

  it('are given back to all other tenants if the books of one refuse it', async () => {
    const tenants = await Promise.all(Array.from({ length: 3 }, () => trial.billing.tenant(1_000)));
    const broken = tenants[1]!;
    // The highest version, so that there is no next one.
    await database.query('UPDATE billing.tenant_books SET version = 9223372036854775807 WHERE tenant_id = $1', [
      broken,
    ]);
    for (const tenantId of tenants) {
      await trial.deliver(tenantId);
      await trial.store.withdraw({ tenantId, version: 2n, nanos: 900n * CENT });
      await database.query(
        `INSERT INTO billing.withdrawal_intent (id, tenant_id, created_at) VALUES ($1, $2, now() - interval '11 s')`,
        [newId('msg'), tenantId],
      );
    }
    expect(await trial.moneyOut.giveBackAbandoned()).toBe(2);
    const healthy = tenants.filter((tenantId) => tenantId !== broken);
    for (const tenantId of healthy) {
      await trial.deliver(tenantId);
      expect((await trial.sums(tenantId)).balanceNanos).toBe(1_000n * CENT);
    }
    expect(await database.query('SELECT tenant_id FROM billing.withdrawal_intent')).toEqual([{ tenant_id: broken }]);
  });

  it('are given back to all other tenants if more refuse it than one round takes', async () => {
    const broken = await trial.billing.tenant(1_000);
    await database.query('UPDATE billing.tenant_books SET version = 9223372036854775807 WHERE tenant_id = $1', [
      broken,
    ]);
    const abandon = (tenantId: string, ids: string[]) =>
      database.query(
        `INSERT INTO billing.withdrawal_intent (id, tenant_id, created_at)
         SELECT id, $1, now() - interval '11 s' FROM unnest($2::text[]) AS id`,
        [tenantId, ids],
      );
    await abandon(
      broken,
      Array.from({ length: 100 }, () => newId('msg')),
    );
    const healthy = await trial.billing.tenant(1_000);
    await abandon(healthy, [newId('msg')]);
    expect(await trial.moneyOut.giveBackAbandoned()).toBe(0);
    expect(await trial.moneyOut.giveBackAbandoned()).toBe(1);
    // The next round begins again.
    const later = await trial.billing.tenant(1_000);
    await abandon(later, ['msg_0']);
    expect(await trial.moneyOut.giveBackAbandoned()).toBe(1);
  });
});
