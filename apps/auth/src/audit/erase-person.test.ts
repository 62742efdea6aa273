import { type Author, newId, UnavailableError } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { openAuthDatabase } from '../database';
import { minted, useAuth } from '../running-auth.fixture';
import { erasePerson } from './erase-person';

const { auth, database } = useAuth();

const person = (name: string): Author & { id: string; name: string } => ({
  ...{ kind: 'person', id: `${name}-${newId('msg')}`, name: `${name}@example.com` },
  ...{ address: '10.1.1.1', requestId: 'r' },
});
const log = async () => (await auth.request('auth.audit.list', { limit: 200 })).data;

const record = (change: object, by: Author) => auth.request('auth.audit.record', { ...change, by } as never);
const newKey = async (tenantId: string, owner: string, by: Author) =>
  (await auth.request('auth.keys.create', { tenantId, name: 'k', by, ...minted('key'), owner })).id;
const ownersOf = async (keys: string[]) => {
  const sql = 'SELECT owner FROM auth.credential WHERE id = ANY ($1) ORDER BY array_position($1, id)';
  return (await database.query<{ owner: string | null }>(sql, [keys])).map(({ owner }) => owner);
};

it('an erased person is nowhere by name, and the rows of others stay as they are', async () => {
  const [anna, bob] = [person('anna'), person('bob')];
  const { id: tenantId } = await auth.request('auth.tenants.create', { name: 'Acme', by: anna });
  const key = { tenantId, name: 'annas laptop', by: bob };
  await auth.request('auth.keys.create', { ...key, ...minted('key'), owner: 'Anna@example.com' });
  await record(
    { action: 'session.end', target: anna.id, before: { address: '10.2.2.2', browser: 'Firefox', createdAt: 'x' } },
    anna,
  );
  await record({ action: 'member.add', target: anna.id, tenantId, after: { name: anna.name, role: 'viewer' } }, bob);
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

it('an address that is not its own erases nothing in tenants to which the person never belonged', async () => {
  const [owner, imposter, victim] = [person('owner'), person('imposter'), person('victim')];
  imposter.name = victim.name;
  const [own, left, foreign] = [await auth.tenant(), await auth.tenant(), await auth.tenant()];
  const keys = await Promise.all([own, left, foreign].map((tenantId) => newKey(tenantId, victim.name, owner)));
  for (const tenantId of [own, left]) {
    const member = { target: imposter.id, tenantId };
    await record({ action: 'member.add', ...member, after: { name: victim.name, role: 'viewer' } }, imposter);
  }
  await record({ action: 'member.remove', target: imposter.id, tenantId: left, before: { name: victim.name } }, owner);
  await record({ action: 'member.add', target: victim.id, tenantId: foreign, after: { name: victim.name } }, victim);
  await record({ action: 'operator.remove', target: victim.id, before: { name: victim.name } }, owner);
  const foreigners = async () => (await log()).filter((row) => row.tenantId === foreign || row.target === victim.id);
  const before = await foreigners();

  await auth.request('auth.people.erase', { userId: imposter.id, email: victim.name, by: owner });
  expect(await foreigners()).toEqual(before);
  expect(await ownersOf(keys)).toEqual([null, null, victim.name]);
  const others = (await log()).filter((row) => row.tenantId === own || row.tenantId === left);
  expect(others.length).toBeGreaterThan(4);
  expect(JSON.stringify(others)).not.toContain(victim.name);
});

it('a repeat erases what was written meanwhile, and adds no further row', async () => {
  const late = person('late');
  const tenantId = await auth.tenant();
  const erase = () => auth.request('auth.people.erase', { userId: late.id, email: late.name, by: late });
  await record({ action: 'member.add', target: late.id, tenantId, after: { name: late.name } }, late);
  await Promise.all([erase(), erase()]);
  const key = await newKey(tenantId, late.name, late);
  await erase();
  expect(await ownersOf([key])).toEqual([null]);
  const rows = (await log()).filter(({ by }) => by.id === late.id);
  expect(rows.map(({ action }) => action)).toEqual(['key.create', 'account.erase', 'member.add']);
  expect(JSON.stringify(rows)).not.toContain(late.name);
});

it('an erasure reads only the rows of its person, however large the log is', async () => {
  const few = person('few');
  const tenantId = await auth.tenant();
  await record({ action: 'member.add', target: few.id, tenantId, after: { name: few.name } }, few);
  await database.query(
    `INSERT INTO auth.audit_log (id, at, author_kind, author_id, author_name, action, tenant_id, target, after)
     SELECT 'aud_' || lpad(n::text, 26, '0'), now(), 'person', 'p' || n, 'p' || n, 'key.create', $1, 't' || n,
       jsonb_build_object('name', 'n' || n) FROM generate_series(1, 20000) n`,
    [tenantId],
  );
  // The counters may still have reads of transactions before this one.
  const reads = async () => {
    const [read] = await database.query<{ scans: number; rows: number }>(
      `SELECT coalesce(seq_scan, 0)::int AS scans, coalesce(idx_tup_fetch, 0)::int AS rows
       FROM pg_stat_xact_user_tables WHERE relid = 'auth.audit_log'::regclass`,
    );
    return read!;
  };
  // Each sample of ANALYZE leads to other estimates.
  for (let sample = 0; sample < 10; sample++) {
    await database.query('ANALYZE auth.audit_log');
    await database.query('BEGIN');
    const before = await reads();
    await database.query('SELECT auth.erase_changes_of_person($1, $2, 500)', [few.id, few.name]);
    const after = await reads();
    await database.query('COMMIT');
    expect(after.scans).toBe(before.scans);
    expect(after.rows).toBeGreaterThan(before.rows);
    expect(after.rows - before.rows).toBeLessThan(20);
  }
  const [row] = await database.query('SELECT author_name, after FROM auth.audit_log WHERE target = $1', [few.id]);
  expect(row).toEqual({ author_name: null, after: { name: 'erased' } });
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

it('a key of the person is revoked at once while its changes are still being erased', async () => {
  const [busy, other] = [person('busy'), person('other')];
  const tenantId = await auth.tenant();
  const key = await newKey(tenantId, busy.name, busy);
  await database.query('BEGIN');
  try {
    await database.query('SELECT id FROM auth.audit_log WHERE target = $1 FOR UPDATE', [key]);
    const erased = auth.request('auth.people.erase', { userId: busy.id, email: busy.name, by: busy });
    await eventually(async () => {
      const waiting = 'SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))';
      expect(await database.query(waiting)).toHaveLength(1);
    });
    await auth.request('auth.keys.revoke', { tenantId, id: key, by: other });
    await database.query('COMMIT');
    await erased;
  } finally {
    await database.query('ROLLBACK');
  }
  expect(await ownersOf([key])).toEqual([null]);
  expect(JSON.stringify((await log()).filter(({ target }) => target === key))).not.toContain(busy.name);
});

it('many changes and keys of a person are erased in batches, each in a transaction of its own', async () => {
  const many = person('many');
  const tenantId = await auth.tenant();
  const batchRows = 10;
  const ids = (kind: 'key' | 'aud') => Array.from({ length: 2 * batchRows + 5 }, () => newId(kind));
  const [keys, own, named] = [ids('key'), ids('aud'), ids('aud')];
  // Projected already, because the projection would write to the rows of several batches in one transaction.
  await database.query(
    `INSERT INTO auth.credential (id, kind, tenant_id, name, owner, hash, last4, profile, version, projected_version)
     SELECT id, 'key', $2, 'k', $3, encode(sha256(id::bytea), 'hex'), 'last', 'small', 1, 1
       FROM unnest($1::text[]) AS id`,
    [keys, tenantId, many.name],
  );
  const changes = `INSERT INTO auth.audit_log (id, at, author_kind, author_id, author_name, action, tenant_id, after)
    SELECT id, now(), 'person', $3, $3, 'key.update', $2, jsonb_build_object('owner', $4::text)
      FROM unnest($1::text[]) AS id`;
  await database.query(changes, [own, tenantId, many.id, many.name]);
  await database.query(changes, [named, tenantId, 'somebody', many.name]);
  const asked = { userId: many.id, email: many.name, by: many };
  // Each try is over after its first batch, as for a person with very many rows. The next one goes on from there.
  const tries = { batchRows, tryMs: 0 };
  let unfinished = 0;
  const books = await openAuthDatabase(database.url);
  const tryOnce = () =>
    erasePerson(books, asked, tries).then(
      () => true,
      (error: unknown) => {
        expect(error).toBeInstanceOf(UnavailableError);
        unfinished++;
        return false;
      },
    );
  while (!(await tryOnce())) expect(unfinished).toBeLessThan(20);
  await books.destroy();
  expect(new Set(await ownersOf(keys))).toEqual(new Set([null]));
  for (const [table, rows] of [
    ['credential', keys],
    ['audit_log', own],
    ['audit_log', named],
  ]) {
    const [state] = await database.query(
      `SELECT count(*) FILTER (WHERE t::text ~ $2)::int AS named, count(DISTINCT xmin::text)::int AS transactions
       FROM auth.${String(table)} t WHERE id = ANY ($1)`,
      [rows, many.name],
    );
    expect(state).toEqual({ named: 0, transactions: 3 });
  }
  const logged = (await log()).filter(({ action, target }) => action === 'account.erase' && target === many.id);
  expect(logged).toHaveLength(1);
});
