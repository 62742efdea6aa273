import { MAX_ROTATION_GRACE_SECONDS, newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { MAX_CREDENTIALS_PER_BATCH } from '../project/projector';
import { minted, useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();
let tenantId: string;
beforeEach(async () => {
  tenantId = await auth.tenant();
});

async function key(more: { expiresAt?: string } = {}) {
  const first = minted('key');
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', profile: 'batch', ...more, ...first });
  return { id, first };
}
const rotate = async (id: string, graceSeconds: number) => {
  const next = minted('key');
  const row = await auth.request('auth.keys.rotate', { tenantId, id, graceSeconds, ...next });
  return { ...next, row };
};
const HOUR_S = 3_600;

describe('a rotated key', () => {
  it('has both secrets in force with the same id, the former one until the end of the grace time', async () => {
    const { id, first } = await key();
    const fromMs = Date.now();
    const { hash, last4, row } = await rotate(id, HOUR_S);
    expect(row).toMatchObject({ id, last4, status: 'active', rotatedAt: expect.any(String) });
    const same = { id, tenantId, plan: 'free', profile: 'batch', version: 2, revokedAtMs: null };
    expect(await auth.edge.lookup(hash)).toMatchObject({ ...same, expiresAtMs: null });
    const former = await auth.edge.lookup(first.hash);
    expect(former).toMatchObject({ ...same, expiresAtMs: Date.parse(row.formerUntil!) });
    expect(former!.expiresAtMs! - fromMs).toBeGreaterThanOrEqual(HOUR_S * 1_000);
    expect((await auth.request('auth.audit.list', { tenantId })).data[0]).toMatchObject({
      ...{ action: 'key.rotate', target: id },
      before: { last4: first.last4, formerUntil: null },
      after: { last4, formerUntil: row.formerUntil },
    });
  });

  it('is among the first that are written again to a store that lost its records', async () => {
    const older = Array.from({ length: MAX_CREDENTIALS_PER_BATCH }, () => ({ id: newId('key'), ...minted('key') }));
    await database.query(
      `INSERT INTO auth.credential (id, kind, tenant_id, name, hash, last4, profile)
       SELECT id, 'key', $1, 'older', hash, last4, 'batch'
         FROM jsonb_to_recordset($2::jsonb) AS r (id text, hash text, last4 text)`,
      [tenantId, JSON.stringify(older)],
    );
    const { id, first } = await key();
    const { row } = await rotate(id, 0);
    // The loop's own batch is committed then, so the next batch is of `projectAll`.
    const unprojected = 'SELECT FROM auth.credential WHERE projected_version < version';
    await eventually(async () => expect(await database.query(unprojected)).toHaveLength(0));
    const put = jest.spyOn(auth.projector['store'], 'put');
    await auth.projector.projectAll();
    const ended = put.mock.calls[0]![0].find(({ hash }) => hash === first.hash);
    expect(ended).toMatchObject({ id, revokedAtMs: Date.parse(row.formerUntil!) });
    put.mockRestore();
  });

  it('without a grace time refuses all former secrets from the answer on', async () => {
    const { id, first } = await key();
    const second = await rotate(id, HOUR_S);
    const third = await rotate(id, 0);
    // Revoked, not only expired: a gateway whose clock is behind refuses them too.
    const revokedAtMs = Date.parse(third.row.formerUntil!);
    for (const { hash } of [first, second]) expect(await auth.edge.lookup(hash)).toMatchObject({ revokedAtMs });
    expect(await auth.edge.lookup(third.hash)).toMatchObject({ expiresAtMs: null, revokedAtMs: null, version: 3 });
    expect(await auth.request('auth.keys.get', { tenantId, id })).toMatchObject({ status: 'active' });
    const fourth = await rotate(id, HOUR_S);
    // The edge has looked these two up before, so it learns of the rotation from its feed.
    await eventually(async () => {
      expect(await auth.edge.lookup(first.hash)).toMatchObject({ revokedAtMs, version: 4 });
      expect(await auth.edge.lookup(third.hash)).toMatchObject({ revokedAtMs: null, version: 4 });
    });
    expect(await auth.request('auth.keys.get', { tenantId, id })).toEqual(fourth.row);
  });

  it('does not lengthen the grace time of an earlier rotation', async () => {
    const { id, first } = await key();
    const { row } = await rotate(id, HOUR_S);
    const second = await rotate(id, 10 * HOUR_S);
    expect((await auth.edge.lookup(first.hash))!.expiresAtMs).toBe(Date.parse(row.formerUntil!));
    await rotate(id, 20 * HOUR_S);
    expect((await auth.edge.lookup(second.hash))!.expiresAtMs).toBeGreaterThan(Date.parse(row.formerUntil!));
  });

  it('is changed, revoked and refilled with all its secrets', async () => {
    const { id, first } = await key({ expiresAt: new Date(Date.now() + 60_000).toISOString() });
    const { hash } = await rotate(id, HOUR_S);
    const both = async () => [await auth.edge.lookup(first.hash), await auth.edge.lookup(hash)];
    // The key ends before the grace time does.
    const [one, other] = await both();
    expect(one!.expiresAtMs).toBe(other!.expiresAtMs);
    await auth.request('auth.keys.update', { tenantId, id, profile: 'small', expiresAt: null });
    const bothAre = (fields: object) =>
      eventually(async () => {
        for (const record of await both()) expect(record).toMatchObject(fields);
      });
    await bothAre({ profile: 'small', version: 3 });
    await auth.request('auth.keys.revoke', { tenantId, id });
    await bothAre({ revokedAtMs: expect.any(Number) });
    await database.query('TRUNCATE credentials.credential');
    await auth.projector.projectAll();
    for (const { hash: stored } of [first, { hash }])
      expect(
        await database.query('SELECT 1 AS ok FROM credentials.credential WHERE hash = $1 AND revoked_at_ms > 0', [
          stored,
        ]),
      ).toEqual([{ ok: 1 }]);
  });

  it('gets its secrets one after the other when several callers rotate it at once', async () => {
    const { id } = await key();
    const secrets = await Promise.all(Array.from({ length: 6 }, () => rotate(id, HOUR_S)));
    const records = await Promise.all(secrets.map(({ hash }) => auth.edge.lookup(hash)));
    expect(records.filter((record) => record!.expiresAtMs === null)).toHaveLength(1);
    expect(new Set(records.map((record) => record!.version))).toEqual(new Set([7]));
  });
});

it('a rotation refuses a revoked key, keys of others, and a wrong grace time', async () => {
  const { id } = await key();
  const other = await auth.tenant();
  const next = { ...minted('key'), graceSeconds: 0 };
  for (const unknown of [
    { tenantId: other, id },
    { tenantId, id: newId('key') },
    { tenantId: newId('ten'), id },
  ])
    expect(await auth.refusal('auth.keys.rotate', { ...next, ...unknown })).toBe('not_found');
  for (const graceSeconds of [-1, 0.5, MAX_ROTATION_GRACE_SECONDS + 1])
    expect(await auth.refusal('auth.keys.rotate', { ...next, tenantId, id, graceSeconds })).toBe('invalid_grace');
  await auth.request('auth.keys.revoke', { tenantId, id });
  expect(await auth.refusal('auth.keys.rotate', { ...next, tenantId, id })).toBe('key_revoked');
});
