import { PostgresAdmissionStore } from '@tollgate/admission';
import type { TenantUpdate } from '@tollgate/contracts';
import { newId, UnavailableError } from '@tollgate/contracts';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { useBilling } from '../testing/billing.fixture';
import { TenantStatus, validateTenantUpdate } from './tenant-status';

const database = useTestDatabase();

describe('a status from auth', () => {
  const billing = useBilling(database);
  let store: PostgresAdmissionStore;
  beforeAll(() => {
    store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  });
  afterAll(() => store.close());
  const apply = (...batch: TenantUpdate[]) =>
    new TenantStatus(billing.dataSource, store, { postingIntervalMs: 0 }).apply(batch);
  const suspensions = async (tenantId: string) => (await billing.updates(tenantId)).map((one) => one.suspended);

  it('goes to the admission store with the next version of the books, and stays in every later update', async () => {
    const tenantId = await billing.tenant(10);
    await apply({ tenantId, version: 1, status: 'suspended' });
    await billing.topUps.add({ tenantId, amountCents: 1, source: 'manual', ref: 'more' });
    expect(await billing.updates(tenantId)).toMatchObject([
      { version: '1', suspended: false },
      { version: '2', suspended: true },
      { version: '3', suspended: true },
    ]);
  });

  it('counts only if it is newer, in any order of arrival', async () => {
    const tenantId = await billing.tenant(10);
    await apply({ tenantId, version: 2, status: 'active' }, { tenantId, version: 3, status: 'suspended' });
    await apply({ tenantId, version: 1, status: 'active' });
    await apply({ tenantId, version: 3, status: 'suspended' });
    expect(await suspensions(tenantId)).toEqual([false, true]);
    await apply({ tenantId, version: 4, status: 'active' });
    expect(await suspensions(tenantId)).toEqual([false, true, false]);
  });

  it('is in force when it is answered, and committed but refused while the store is unavailable', async () => {
    const tenantId = await billing.tenant(10);
    const away = new PostgresAdmissionStore({ url: 'postgres://nobody@127.0.0.1:1/none' });
    const enforce = (at: PostgresAdmissionStore, version: number, status: TenantUpdate['status']) =>
      new TenantStatus(billing.dataSource, at, { postingIntervalMs: 0 }).enforce({ tenantId, version, status });
    const inForce = async () => (await store.snapshot({ tenantId, limit: 1 }))[0]?.suspended;
    for (let time = 0; time < 2; time++) await expect(enforce(away, 1, 'suspended')).rejects.toThrow(UnavailableError);
    await away.close();
    expect(await suspensions(tenantId)).toEqual([false, true]);
    expect(await inForce()).not.toBe(true);
    await enforce(store, 1, 'suspended');
    expect(await inForce()).toBe(true);
    // An older change that arrives late brings the newer one into force.
    await apply({ tenantId, version: 3, status: 'active' });
    await enforce(store, 2, 'suspended');
    expect(await inForce()).toBe(false);
    expect(await suspensions(tenantId)).toEqual([false, true, false]);
  });

  it('counts again if the books do not have it, so a repeated suspension puts them right', async () => {
    const tenantId = await billing.tenant(10);
    const status: TenantUpdate = { tenantId, version: 1, status: 'suspended' };
    await apply(status);
    await database.query('UPDATE billing.tenant_books SET suspended = false WHERE tenant_id = $1', [tenantId]);
    await new TenantStatus(billing.dataSource, store, { postingIntervalMs: 0 }).enforce(status);
    expect(await suspensions(tenantId)).toEqual([false, true, true]);
    expect((await store.snapshot({ tenantId, limit: 1 }))[0]).toMatchObject({ version: 3n, suspended: true });
  });

  it('creates the books of a tenant that never had credit', async () => {
    const tenantId = newId('ten');
    await apply({ tenantId, version: 1, status: 'suspended' });
    expect(await suspensions(tenantId)).toEqual([true]);
  });
});

describe('validateTenantUpdate', () => {
  const good = { tenantId: newId('ten'), version: 1, status: 'active' };

  it.each([
    [good, null],
    [{ ...good, status: 'suspended', more: 'to come' }, null],
    [null, 'not an object'],
    ['text', 'not an object'],
    [{}, 'tenantId: not a tenant id'],
    [{ ...good, tenantId: 'ten_\0' }, 'tenantId: not a tenant id'],
    [{ ...good, tenantId: `ten_${'x'.repeat(100_000)}` }, 'tenantId: not a tenant id'],
    [{ ...good, version: '1' }, 'version: not a version'],
    [{ ...good, version: -1 }, 'version: not a version'],
    [{ ...good, version: 2 ** 60 }, 'version: not a version'],
    [{ ...good, status: 'gone' }, 'status: unknown'],
  ])('says what is wrong in %j: %s', (update, reason) => {
    expect(validateTenantUpdate(update)).toBe(reason);
  });
});
