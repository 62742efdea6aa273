import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId, UnavailableError } from '@tollgate/contracts';
import { eventually, OUTBOX_TABLE_SQL } from '@tollgate/testing';
import { useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();

it('a tenant is active, and has the plan that it names or the first plan of tollgate.yaml', async () => {
  const named = await auth.request('auth.tenants.create', { name: 'Acme', plan: 'pro' });
  expect(named).toEqual({
    id: expect.stringMatching(/^ten_/),
    name: 'Acme',
    externalId: null,
    plan: 'pro',
    status: 'active',
    closedAt: null,
    erasedAt: null,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  expect(await auth.request('auth.tenants.get', { tenantId: named.id })).toEqual(named);
  expect(await auth.request('auth.tenants.create', { name: 'Acme' })).toMatchObject({ plan: 'free', status: 'active' });
});

it('a new tenant has no plan that tollgate.yaml does not have', async () => {
  expect(await auth.refusal('auth.tenants.create', { name: 'Acme', plan: 'gold' })).toBe('invalid_plan');
});

it('no tenant is read by an unknown id, or by a text that is not an id', async () => {
  for (const tenantId of [newId('ten'), 'ten_1', '', '\0', "'; --"]) {
    expect(await auth.refusal('auth.tenants.get', { tenantId })).toBe('not_found');
  }
});

it('names are those of the tenants that exist, and other ids are refused', async () => {
  const [one, two] = [await auth.tenant(), await auth.tenant()];
  const named = await auth.request('auth.tenants.names', { ids: [one, newId('ten'), two] });
  expect(new Set(named.data.map(({ id }) => id))).toEqual(new Set([one, two]));
  expect(named.data[0]).toEqual({ id: expect.any(String), name: expect.any(String) });
  expect(await auth.request('auth.tenants.names', { ids: [] })).toEqual({ data: [] });
  for (const ids of [['ten_1'], [newId('key')], Array.from({ length: 201 }, () => one), one as unknown as string[]])
    expect(await auth.refusal('auth.tenants.names', { ids })).toBe('invalid_parameter');
});

it('a part of a name, id or external id finds tenants, and every character is taken as itself', async () => {
  const one = await auth.request('auth.tenants.create', { name: '100% Öl_Handel', externalId: 'cus_search' });
  const found = async (search: string) => {
    const { data } = await auth.request('auth.tenants.list', { limit: 100, search });
    return data.some(({ id }) => id === one.id);
  };
  for (const search of ['100% Öl', 'L_HANDEL', one.id.slice(4, 20).toUpperCase(), 'CUS_sea'])
    expect(await found(search)).toBe(true);
  for (const search of ['100_', '%%', "'; --", 'nobody']) expect(await found(search)).toBe(false);
});

it('a list begins with the newest, and its pages have every row once although rows are added meanwhile', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) ids.push(await auth.tenant());
  const first = await auth.request('auth.tenants.list', { limit: 3 });
  expect(first.data.map((row) => row.id)).toEqual([ids[6], ids[5], ids[4]]);
  await auth.tenant();
  const second = await auth.request('auth.tenants.list', { limit: 3, after: first.nextCursor! });
  expect(second.data.map((row) => row.id)).toEqual([ids[3], ids[2], ids[1]]);
  const all = await auth.request('auth.tenants.list', {});
  expect(all.nextCursor).toBeNull();
  const last = await auth.request('auth.tenants.list', { after: all.data.at(-1)!.id });
  expect(last).toEqual({ data: [], nextCursor: null });
});

it('a list refuses an `after` that is not a tenant, and a limit out of bounds', async () => {
  for (const query of [{ after: newId('ten') }, { after: '\0' }, { limit: 0 }, { limit: 201 }, { limit: 1.5 }]) {
    expect(await auth.refusal('auth.tenants.list', query)).toBe('invalid_parameter');
  }
});

it('the database itself refuses a blank, untrimmed or overlong name', async () => {
  for (const name of ['', ' a', 'a ', 'x'.repeat(101)]) {
    const insert = database.query(`INSERT INTO auth.tenant (id, name, plan) VALUES ($1, $2, 'free')`, [
      newId('ten'),
      name,
    ]);
    await expect(insert).rejects.toThrow(/tenant_name_check/);
  }
});

describe('suspension', () => {
  const told = (tenantId: string) =>
    database.query(`SELECT data FROM auth.outbox WHERE data->>'tenantId' = $1 ORDER BY id`, [tenantId]);

  it('suspends and resumes, also repeatedly, and publishes the changes in their order', async () => {
    const tenantId = await auth.tenant();
    for (const status of ['suspended', 'suspended', 'active'] as const) {
      expect(await auth.request('auth.tenants.setStatus', { tenantId, status })).toMatchObject({
        id: tenantId,
        status,
      });
      expect(await auth.request('auth.tenants.get', { tenantId })).toMatchObject({ status });
    }
    const [row] = await database.query<{ version: number }>(
      'SELECT status_version AS version FROM auth.tenant WHERE id = $1',
      [tenantId],
    );
    expect(row).toEqual({ version: 2 });
    await eventually(async () => expect(await told(tenantId)).toEqual([]));
  });

  it('a suspension is committed but not answered until billing has acted on it', async () => {
    const tenantId = await auth.tenant();
    const suspend = () => auth.request('auth.tenants.setStatus', { tenantId, status: 'suspended' });
    auth.billing.isAway = true;
    try {
      for (let time = 0; time < 2; time++) await expect(suspend()).rejects.toThrow(UnavailableError);
    } finally {
      auth.billing.isAway = false;
    }
    expect(await auth.request('auth.tenants.get', { tenantId })).toMatchObject({ status: 'suspended' });
    expect(await suspend()).toMatchObject({ id: tenantId, status: 'suspended' });
    const acted = auth.billing.actedOn.filter((update) => update.tenantId === tenantId);
    expect(acted).toEqual([{ tenantId, version: 1, status: 'suspended' }]);
  });

  it('refuses an unknown tenant and an unknown status', async () => {
    for (const tenantId of [newId('ten'), 'x', '\0']) {
      expect(await auth.refusal('auth.tenants.setStatus', { tenantId, status: 'active' })).toBe('not_found');
    }
    const wrong = { tenantId: await auth.tenant(), status: 'closed' as 'active' };
    expect(await auth.refusal('auth.tenants.setStatus', wrong)).toBe('invalid_parameter');
  });

  it('the outbox table is the one that the relay expects', () => {
    expect(readFileSync(join(__dirname, '../migrations/002_suspension.sql'), 'utf8')).toContain(OUTBOX_TABLE_SQL);
  });
});
