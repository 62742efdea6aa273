import { type Author, newId } from '@tollgate/contracts';
import { minted, useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();

const person = (name: string): Author & { id: string; name: string } => ({
  ...{ kind: 'person', id: `${name}-${newId('msg')}`, name: `${name}@example.com` },
  ...{ address: '10.1.1.1', requestId: 'r' },
});
const log = async () => (await auth.request('auth.audit.list', { limit: 200 })).data;

it('an erased person is nowhere by name, and the rows of others stay as they are', async () => {
  const [anna, bob] = [person('anna'), person('bob')];
  const { id: tenantId } = await auth.request('auth.tenants.create', { name: 'Acme', by: anna });
  const key = { tenantId, name: 'annas laptop', by: bob };
  await auth.request('auth.keys.create', { ...key, ...minted('key'), owner: 'Anna@example.com' });
  const record = (change: object, by: Author) =>
    auth.request('auth.audit.record', { target: anna.id, ...change, by } as never);
  await record({ action: 'session.end', before: { address: '10.2.2.2', browser: 'Firefox', createdAt: 'x' } }, anna);
  await record({ action: 'member.add', tenantId, after: { name: anna.name, role: 'viewer' } }, bob);
  await record({ action: 'member.remove', target: bob.id, before: { name: bob.name, role: 'viewer' } }, anna);
  const before = await log();
  await auth.request('auth.people.erase', { userId: anna.id, email: 'Anna@Example.com', by: anna });

  const [row, ...after] = await log();
  expect(row).toMatchObject({ action: 'account.erase', target: anna.id, by: { ...anna, name: null, address: null } });
  expect(after.map(({ id, at, action, target, by }) => [id, at, action, target, by.id])).toEqual(
    before.map(({ id, at, action, target, by }) => [id, at, action, target, by.id]),
  );
  const rowOf = (action: string) => after.find((one) => one.action === action);
  expect(rowOf('tenant.create')).toMatchObject({
    by: { id: anna.id, name: null, address: null },
    after: { name: 'Acme' },
  });
  expect(rowOf('session.end')!.before).toEqual({ address: 'erased', browser: 'erased', createdAt: 'x' });
  expect(rowOf('member.add')).toMatchObject({ by: bob, after: { name: 'erased', role: 'viewer' } });
  expect(rowOf('member.remove')!.before).toEqual({ name: bob.name, role: 'viewer' });
  expect(rowOf('key.create')!.after).toMatchObject({ name: 'annas laptop', owner: 'erased' });
  const [{ owner }] = (await database.query('SELECT owner FROM auth.credential WHERE tenant_id = $1', [tenantId])) as [
    { owner: string | null },
  ];
  expect(owner).toBeNull();
});

it('nobody takes a person from the log in another way, not even the owner of the schema', async () => {
  const eve = person('eve');
  await auth.request('auth.audit.record', { action: 'totp.enable', target: eve.id, by: eve });
  const rows = 'WHERE author_id = $1';
  const nameless = `UPDATE auth.audit_log SET author_name = NULL, address = NULL ${rows}`;
  await expect(database.query(nameless, [eve.id])).rejects.toThrow(/append-only/);
  const named = `SELECT set_config('tollgate.erased_person', $1, true), set_config('tollgate.erased_email', 'x', true)`;
  for (const set of [`author_name = 'somebody'`, `author_name = NULL, address = NULL, target = 'x'`]) {
    await database.query('BEGIN');
    await database.query(named, [eve.id]);
    await expect(database.query(`UPDATE auth.audit_log SET ${set} ${rows}`, [eve.id])).rejects.toThrow(/append-only/);
    await database.query('ROLLBACK');
  }
});
