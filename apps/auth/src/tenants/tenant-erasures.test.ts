import { newId, UnavailableError } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIGRATIONS } from '../database';
import { useAuth } from '../running-auth.fixture';
import { namedTenants } from './named-tenants.fixture';
import { MAX_ROWS_PER_ERASURE } from './tenant-erasures';

const { auth, database } = useAuth();
const { customer, log } = namedTenants(auth);

describe('an erased tenant', () => {
  const person = {
    kind: 'person' as const,
    id: 'usr_1',
    name: 'anna@example.org',
    address: '10.1.1.1',
    requestId: 'r',
  };
  const operator = { ...person, kind: 'operator' as const, id: 'opr_1', name: 'olaf' };

  it('is nowhere by name, and keeps its ids, credentials and changes', async () => {
    const { tenantId, keyId } = await customer({ owner: 'anna', tags: ['team-anna'] });
    const bystander = await customer({ owner: 'anna' });
    await auth.request('auth.keys.update', { tenantId, id: keyId, name: 'annas phone', by: person });
    await auth.request('auth.audit.record', {
      ...{ action: 'member.update' as const, target: 'usr_2', tenantId, by: person },
      before: { name: 'anna@example.org', role: 'viewer' },
      after: { name: 'anna@example.org', role: 'owner' },
    });
    await auth.request('auth.tenants.update', { tenantId, name: 'Anna Beispiel', by: operator });
    await auth.request('auth.tenants.close', { tenantId, by: operator });
    const before = await log(tenantId);
    const others = await log(bystander.tenantId);
    expect(JSON.stringify(before)).toMatch(/anna/i);

    const erased = await auth.request('auth.tenants.erase', { tenantId, by: operator });
    expect(erased).toMatchObject({ id: tenantId, name: 'erased', externalId: null, status: 'closed' });
    const [added, ...rows] = await log(tenantId);
    expect(added).toMatchObject({ action: 'tenant.erase', by: { name: 'olaf' }, before: null, after: null });
    expect(rows.map(({ id, at, action, target }) => [id, at, action, target])).toEqual(
      before.map(({ id, at, action, target }) => [id, at, action, target]),
    );
    expect(rows.find(({ action }) => action === 'key.update')).toMatchObject({
      by: { kind: 'person', id: 'usr_1', name: null, address: null },
      before: { name: 'erased' },
      after: { name: 'erased' },
    });
    expect(rows.find(({ action }) => action === 'member.update')!.after).toEqual({ name: 'erased', role: 'owner' });
    expect(rows.find(({ action }) => action === 'key.create')!.after).toMatchObject({
      profile: 'small',
      name: 'erased',
      owner: 'erased',
      tags: 'erased',
    });
    const everything = await database.query<{ text: string }>(
      `SELECT (SELECT jsonb_agg(t) FROM auth.tenant t WHERE id = $1)::text
           || (SELECT jsonb_agg(c) FROM auth.credential c WHERE tenant_id = $1)::text
           || (SELECT jsonb_agg(a) FROM auth.audit_log a WHERE tenant_id = $1)::text AS text`,
      [tenantId],
    );
    expect(everything[0]!.text).not.toMatch(/anna|crm-/i);
    expect(await log(bystander.tenantId)).toEqual(others);
    expect(await auth.request('auth.tenants.erase', { tenantId })).toEqual(erased);
    expect(await log(tenantId)).toHaveLength(rows.length + 1);
  });

  it('was closed before', async () => {
    const { tenantId } = await customer();
    expect(await auth.refusal('auth.tenants.erase', { tenantId })).toBe('tenant_not_closed');
    expect(await auth.request('auth.tenants.get', { tenantId })).toMatchObject({ name: 'Anna Muster' });
  });

  it('has an audit log that nobody changes in another way', async () => {
    const { tenantId } = await customer();
    await auth.request('auth.tenants.close', { tenantId });
    const change = (set: string) => database.query(`UPDATE auth.audit_log SET ${set} WHERE tenant_id = $1`, [tenantId]);
    const erasure = 'before = auth.without_names(before), after = auth.without_names(after)';
    await expect(change(erasure)).rejects.toThrow(/append-only/);
    await auth.request('auth.tenants.erase', { tenantId });
    for (const set of [`${erasure}, action = 'x'`, `after = '{}'`, `author_id = 'x'`])
      await expect(change(set)).rejects.toThrow(/append-only/);
  });

  const dueOf = async (tenantId: string) =>
    (
      await database.query<{ due: Date | null }>('SELECT erasure_due_at AS due FROM auth.tenant WHERE id = $1', [
        tenantId,
      ])
    )[0]!.due;
  /** Ends the minute until the second try, and waits for that. */
  const completed = async (tenantId: string) => {
    await database.query('UPDATE auth.tenant SET erasure_due_at = now() WHERE id = $1', [tenantId]);
    await eventually(async () => expect(await dueOf(tenantId)).toBeNull());
  };
  const triesOf = (tenantId: string) => auth.billing.erased.filter((one) => one === tenantId).length;

  it('is erased by billing before it is answered, and again when all changes have ended that were under way', async () => {
    const { tenantId } = await customer();
    await auth.request('auth.tenants.close', { tenantId });
    await database.query('BEGIN');
    const underWay = `INSERT INTO auth.audit_log (id, at, author_kind, author_id, author_name, action, tenant_id)
      VALUES ($1, now(), 'person', 'usr_1', 'anna@example.org', 'member.remove', $2)`;
    await database.query(underWay, [newId('aud'), tenantId]);
    await auth.request('auth.tenants.erase', { tenantId });
    expect(triesOf(tenantId)).toBe(1);
    await database.query('COMMIT');
    expect(JSON.stringify(await log(tenantId))).toContain('anna@');
    await completed(tenantId);
    expect(JSON.stringify(await log(tenantId))).not.toContain('anna@');
    expect(triesOf(tenantId)).toBe(2);
    // Complete: a repeat answers, and reads no row of the log.
    const reads = `SELECT idx_tup_fetch + seq_tup_read AS rows FROM pg_stat_xact_user_tables
      WHERE relid = 'auth.audit_log'::regclass`;
    await database.query('BEGIN');
    const before = await database.query(reads);
    await database.query(`SELECT auth.erase_changes($1, '', 1000)`, [tenantId]);
    expect(await database.query(reads)).toEqual(before);
    await database.query('COMMIT');
    await auth.request('auth.tenants.erase', { tenantId });
    expect([triesOf(tenantId), await dueOf(tenantId)]).toEqual([3, null]);
  });

  it('loses the names of many keys and changes in batches, each in a transaction of its own', async () => {
    const { tenantId } = await customer();
    const ids = (kind: 'key' | 'aud') => Array.from({ length: 2 * MAX_ROWS_PER_ERASURE + 10 }, () => newId(kind));
    const [keys, changes] = [ids('key'), ids('aud')];
    await database.query(
      `INSERT INTO auth.credential (id, kind, tenant_id, name, owner, hash, last4, profile)
       SELECT id, 'key', $2, 'annas key', 'anna', encode(sha256(id::bytea), 'hex'), 'last', 'small'
         FROM unnest($1::text[]) AS id`,
      [keys, tenantId],
    );
    await database.query(
      `INSERT INTO auth.audit_log (id, at, author_kind, author_id, author_name, action, tenant_id, after)
       SELECT id, now(), 'person', 'usr_1', 'anna@example.org', 'key.update', $2, '{"owner": "anna"}'
         FROM unnest($1::text[]) AS id`,
      [changes, tenantId],
    );
    await auth.request('auth.tenants.close', { tenantId });
    // On a slow machine the first try gives up before its last batch.
    await Promise.allSettled([auth.request('auth.tenants.erase', { tenantId })]);
    await completed(tenantId);
    const named = `count(*) FILTER (WHERE t::text ~ 'anna')::int AS named`;
    const keysNow = `SELECT ${named} FROM auth.credential t WHERE id = ANY ($1)`;
    expect(await database.query(keysNow, [keys])).toEqual([{ named: 0 }]);
    const transactions = 'count(DISTINCT xmin::text)::int AS transactions';
    const logNow = `SELECT ${named}, ${transactions} FROM auth.audit_log t WHERE id = ANY ($1)`;
    expect(await database.query(logNow, [changes])).toEqual([{ named: 0, transactions: 3 }]);
  });

  it('by an earlier version, which left the log of billing as it was, is due after the migration', async () => {
    const tenants = [await customer(), await customer(), await customer()].map(({ tenantId }) => tenantId);
    for (const tenantId of tenants.slice(1)) await auth.request('auth.tenants.close', { tenantId });
    await auth.request('auth.tenants.erase', { tenantId: tenants[2]! });
    const migration = readFileSync(join(MIGRATIONS.directory, '013_erasure_due.sql'), 'utf8');
    await database.query('BEGIN');
    try {
      await database.query(
        `ALTER TABLE auth.tenant DROP COLUMN erasure_due_at; SET LOCAL search_path = auth; ${migration}`,
      );
      const due: boolean[] = [];
      for (const tenantId of tenants) due.push((await dueOf(tenantId)) !== null);
      expect(due).toEqual([false, false, true]);
    } finally {
      await database.query('ROLLBACK');
    }
  });

  it('is committed but not answered while billing is unavailable, and billing is asked until it has erased it', async () => {
    const { tenantId } = await customer();
    await auth.request('auth.tenants.close', { tenantId });
    auth.billing.isAway = true;
    try {
      await expect(auth.request('auth.tenants.erase', { tenantId })).rejects.toThrow(UnavailableError);
      expect(await auth.request('auth.tenants.get', { tenantId })).toMatchObject({ name: 'erased' });
      await database.query('UPDATE auth.tenant SET erasure_due_at = now() WHERE id = $1', [tenantId]);
      // By the call, and by the second try.
      const refused = () => auth.billing.notErased.filter((one) => one === tenantId).length;
      await eventually(() => expect(refused()).toBeGreaterThanOrEqual(2));
    } finally {
      auth.billing.isAway = false;
    }
    expect([triesOf(tenantId), await dueOf(tenantId)]).toEqual([0, expect.any(Date)]);
    await completed(tenantId);
    expect(triesOf(tenantId)).toBe(1);
  });

  it('gets no name again: not in its keys, and not in rows that are added later', async () => {
    const { tenantId, keyId } = await customer();
    await auth.request('auth.tenants.close', { tenantId });
    const key = { tenantId, id: keyId };
    await auth.request('auth.keys.update', { ...key, owner: 'anna' });
    await auth.request('auth.tenants.erase', { tenantId });
    for (const names of [{ name: 'annas phone' }, { owner: 'anna' }, { tags: ['anna'] }])
      expect(await auth.refusal('auth.keys.update', { ...key, ...names })).toBe('tenant_closed');
    const before = { name: 'anna@example.org', role: 'viewer' };
    await auth.request('auth.audit.record', { action: 'member.remove', target: 'usr_2', tenantId, before, by: person });
    await auth.request('auth.audit.record', {
      action: 'member.remove',
      target: 'usr_3',
      tenantId,
      before,
      by: operator,
    });
    const [byOperator, byPerson] = await log(tenantId);
    expect(byPerson).toMatchObject({
      by: { kind: 'person', id: 'usr_1', name: null, address: null },
      before: { name: 'erased', role: 'viewer' },
    });
    expect(byOperator).toMatchObject({ by: { name: 'olaf', address: '10.1.1.1' }, before: { name: 'erased' } });
    expect(JSON.stringify(await log(tenantId))).not.toContain('anna');
  });
});
