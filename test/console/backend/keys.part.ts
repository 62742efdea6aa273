import { eventually, type TestDatabase } from '@tollgate/testing';
import type { KeyRow, KeyRowWithBudget } from '../../../apps/console/src/api/answers';
import { BrowserSession } from '../running/browser';
import { API, type Role } from '../running/people';

interface AuditRow {
  action: string;
  target: string;
  by: { kind: string; name: string | null };
  before: Record<string, unknown>;
  after: Record<string, unknown>;
}

/** Keys that are changed and rotated in the console. */
export function keyTests(
  deployed: () => {
    of: (role: Role) => BrowserSession;
    tenantId: string;
    inferenceUrl: string;
    database: Pick<TestDatabase, 'query'>;
  },
): void {
  const tenant = () => `${API}/tenants/${deployed().tenantId}`;
  const create = async (name: string) =>
    (await deployed().of('owner').post(`${tenant()}/keys`, { name })).json as KeyRow & { key: string };
  const rowOf = async (id: string) =>
    ((await deployed().of('viewer').get(`${tenant()}/keys?limit=200`)).json.data as KeyRow[]).find(
      (row) => row.id === id,
    );
  const written = async (action: string, target: string) =>
    ((await deployed().of('owner').get(`${tenant()}/audit?action=${action}`)).json.data as AuditRow[]).filter(
      (row) => row.target === target,
    );
  const models = async (key: string) => {
    const answer = await fetch(`${deployed().inferenceUrl}/models`, { headers: { authorization: `Bearer ${key}` } });
    const { data } = (await answer.json()) as { data?: { id: string }[] };
    return [answer.status, data?.map(({ id }) => id)];
  };

  it('a key is changed, the change is in force, and the log has who made it', async () => {
    const { id, key } = await create('to be changed');
    const path = `${tenant()}/keys/${id}`;
    const wanted = { name: 'changed', owner: 'team-search', tags: ['batch', 'a/b'], models: ['sim-small'] };
    const expiresAt = '2099-01-01T00:00:00.000Z';
    const changed = await deployed()
      .of('member')
      .send('PATCH', path, { ...wanted, expiresAt, owner: ' team-search ' });
    expect([changed.status, changed.json]).toEqual([200, expect.objectContaining({ id, ...wanted, expiresAt })]);
    expect(changed.text).not.toContain(key);
    expect(await rowOf(id)).toMatchObject({ ...wanted, expiresAt });
    expect(await models(key)).toEqual([200, ['sim-small']]);

    const back = { owner: null, tags: [], models: null, expiresAt: null };
    expect((await deployed().of('admin').send('PATCH', path, back)).json).toMatchObject({ name: 'changed', ...back });
    const rows = await written('key.update', id);
    expect(rows.map(({ by }) => [by.kind, by.name])).toEqual([
      ['person', 'admin@example.com'],
      ['person', 'member@example.com'],
    ]);
    expect(rows[1]).toMatchObject({ before: { name: 'to be changed', owner: null }, after: wanted });
  });

  it('the list has the budget of a key also after it expired or was revoked', async () => {
    const owner = deployed().of('owner');
    const [expired, revoked] = [await create('to expire'), await create('to be revoked')];
    for (const { id } of [expired, revoked])
      await owner.send('PUT', `${tenant()}/keys/${id}/budget`, { budgetCents: 30 });
    await owner.send('DELETE', `${tenant()}/keys/${revoked.id}`);
    await deployed().database.query('UPDATE auth.credential SET expires_at = now() WHERE id = $1', [expired.id]);
    const listed = async (id: string) =>
      ((await owner.get(`${tenant()}/keys?limit=200`)).json.data as KeyRowWithBudget[]).find((row) => row.id === id);
    for (const [{ id }, status] of [
      [expired, 'expired'],
      [revoked, 'revoked'],
    ] as const)
      expect(await listed(id)).toMatchObject({ status, budget: { budgetCents: 30, spentNanos: '0' } });
  });

  it.each([
    ['an unknown field', { hash: 'x' }, 'invalid_request'],
    ['a name with a control character', { name: 'a\u0007b' }, 'invalid_name'],
    ['an owner that turns the direction of text', { owner: 'a\u202eb' }, 'invalid_owner'],
    ['a blank owner', { owner: '  ' }, 'invalid_owner'],
    ['a tag with HTML', { tags: ['<b>'] }, 'invalid_request'],
    ['a model that does not exist', { models: ['none'] }, 'invalid_models'],
    ['no models', { models: [] }, 'invalid_request'],
    ['a profile that does not exist', { profile: 'none' }, 'invalid_profile'],
    ['an instant in the past', { expiresAt: '2020-01-01T00:00:00Z' }, 'invalid_expires_at'],
  ])('a key is not changed to %s, nor created so', async (_what, wrong, code) => {
    const owner = deployed().of('owner');
    const { id } = await create('as it was');
    const answer = await owner.send('PATCH', `${tenant()}/keys/${id}`, wrong);
    expect([answer.status, answer.json.error.code]).toEqual([400, code]);
    expect(await rowOf(id)).toMatchObject({ name: 'as it was', owner: null, tags: [], models: null });
    const made = await owner.post(`${tenant()}/keys`, { name: 'new', ...wrong });
    expect([made.status, made.json.error.code]).toEqual([400, code]);
  });

  it('a key is rotated: the next secret is shown once, and the former one works for the grace time', async () => {
    const member = deployed().of('member');
    const { id, key: first } = await create('to be rotated');
    const path = `${tenant()}/keys/${id}/rotate`;
    const second = await member.post(path, { graceSeconds: 3_600 });
    expect(second.json).toMatchObject({ id, name: 'to be rotated', key: expect.stringMatching(/^sk-svc-/) });
    expect((await models(first))[0]).toBe(200);
    expect((await models(second.json.key as string))[0]).toBe(200);
    expect((await rowOf(id))?.last4).toBe((second.json.key as string).slice(-4));
    expect(Date.parse((await rowOf(id))!.formerUntil!)).toBeGreaterThan(Date.now());

    const third = await member.post(path, { graceSeconds: 0 });
    // The gateway, which has both in memory, learns of their end within a second.
    await eventually(async () => {
      for (const ended of [first, second.json.key as string]) expect((await models(ended))[0]).toBe(401);
    });
    expect((await models(third.json.key as string))[0]).toBe(200);
    const rows = await written('key.rotate', id);
    expect(rows.map(({ by }) => by.name)).toEqual(['member@example.com', 'member@example.com']);
    const log = JSON.stringify(rows);
    for (const secret of [first, second.json.key as string, third.json.key as string])
      expect(log).not.toContain(secret);

    for (const graceSeconds of [-1, 1.5, 2_592_001, undefined])
      expect((await member.post(path, { graceSeconds })).json.error.code).toBe('invalid_request');
    await member.send('DELETE', `${tenant()}/keys/${id}`);
    const refused = await member.post(path, { graceSeconds: 0 });
    expect([refused.status, refused.json.error.code]).toEqual([409, 'key_revoked']);
  });
}
