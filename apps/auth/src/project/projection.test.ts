import { hashCredential, newId, UnavailableError } from '@tollgate/contracts';
import { PostgresCredentialStore } from '@tollgate/credentials';
import { configureLogging, type WakeableDelay } from '@tollgate/runtime';
import { eventually, inForceAfterMs } from '@tollgate/testing';
import { minted, startAuth, useAuth } from '../running-auth.fixture';
import { FORGET_INTERVAL_MS, ProjectionLoop } from './projection-loop';
import type { Projector } from './projector';

// Stores fail on purpose here; each failure would log a warning.
configureLogging({ level: 'silent', pretty: false });
const { auth, database } = useAuth();
let tenantId: string;
beforeEach(async () => {
  tenantId = await auth.tenant();
});

const unprojected = async () =>
  (
    await database.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM auth.credential WHERE projected_version < version',
    )
  )[0]!.n;

/** Returns a row while some process is in the middle of a batch. */
const PROJECTING = `
  SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database AND datname = current_database()
   WHERE locktype = 'advisory'
     AND (classid::bigint << 32 | objid::bigint) = hashtextextended('tollgate-auth-projection', 0)`;

/** Commits keys as a process does that dies before it projects them. */
async function leaveBehind(count: number): Promise<string[]> {
  const rows = Array.from({ length: count }, () => ({ id: newId('key'), hash: hashCredential(newId('key')) }));
  await database.query(
    `INSERT INTO auth.credential (id, kind, tenant_id, name, hash, last4, profile)
     SELECT id, 'key', $1, 'left', hash, 'abcd', 'small' FROM jsonb_to_recordset($2::jsonb) AS r (id text, hash text)`,
    [tenantId, JSON.stringify(rows)],
  );
  return rows.map(({ hash }) => hash);
}

it('a round finds changes that a dead process committed and did not project, in bounded batches', async () => {
  const hashes = await leaveBehind(1_200);
  await eventually(async () => expect(await unprojected()).toBe(0));
  const found = await Promise.all(hashes.map((hash) => auth.edge.lookup(hash)));
  expect(found.every((record) => record?.tenantId === tenantId)).toBe(true);
});

it('a revocation that was committed but not projected is in force at the edge within a second', async () => {
  const { hash, last4 } = minted('key');
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
  await auth.edge.lookup(hash);
  await database.query('UPDATE auth.credential SET revoked_at = now(), version = version + 1 WHERE id = $1', [id]);
  const revoked = { version: 2, revokedAtMs: expect.any(Number) };
  const tookMs = await inForceAfterMs(async () => expect(await auth.edge.lookup(hash)).toMatchObject(revoked));
  expect(tookMs).toBeLessThan(1_000);
});

describe('while the store is unavailable', () => {
  /** From now on only the author of a change projects it. */
  const holdTheLoop = () => database.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-auth-projection', 0))`);
  const releaseTheLoop = () => database.query('SELECT pg_advisory_unlock_all()');
  /** The store can still be read, but refuses writes. */
  const goAway = () =>
    database.query('ALTER TABLE credentials.last_change ADD CONSTRAINT away CHECK (number < 0) NOT VALID');
  const comeBack = () => database.query('ALTER TABLE credentials.last_change DROP CONSTRAINT IF EXISTS away');
  const committed = async (id: string) =>
    (
      await database.query<{ revoked_at: Date | null; version: number; projected_version: number }>(
        'SELECT revoked_at, version, projected_version FROM auth.credential WHERE id = $1',
        [id],
      )
    )[0]!;
  const inTheStore = async (hash: string) =>
    (
      await database.query<{ revoked: boolean }>(
        'SELECT revoked_at_ms IS NOT NULL AS revoked FROM credentials.credential WHERE hash = $1',
        [hash],
      )
    )[0];
  const create = (kind: 'key' | 'token', { hash, last4 }: ReturnType<typeof minted>) =>
    kind === 'key'
      ? auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 })
      : auth.request('auth.tokens.create', { tenantId, name: 't', hash, last4, scopes: ['keys:read'] });
  const isListedAsRevoked = async (kind: 'key' | 'token') =>
    kind === 'key'
      ? (await auth.request('auth.keys.list', { tenantId })).data[0]!.status === 'revoked'
      : (await auth.request('auth.tokens.list', { tenantId })).data[0]!.revokedAt !== null;
  beforeEach(holdTheLoop);
  afterEach(async () => {
    await comeBack();
    await releaseTheLoop();
  });

  it.each(['key', 'token'] as const)(
    'the revocation of a %s is committed, but neither answered nor listed before the store accepts it',
    async (kind) => {
      const value = minted(kind);
      const { id } = await create(kind, value);
      const revoke = () => auth.request(kind === 'key' ? 'auth.keys.revoke' : 'auth.tokens.revoke', { tenantId, id });
      await goAway();
      await expect(revoke()).rejects.toThrow(UnavailableError);
      const first = await committed(id);
      expect(first).toEqual({ revoked_at: expect.any(Date), version: 2, projected_version: 1 });
      // A repeat is not answered either, although the table says that the credential is revoked.
      await expect(revoke()).rejects.toThrow(UnavailableError);
      expect(await inTheStore(value.hash)).toEqual({ revoked: false });
      expect(await isListedAsRevoked(kind)).toBe(false);
      await comeBack();
      expect(await revoke()).toEqual({ revokedAt: first.revoked_at!.toISOString() });
      expect(await inTheStore(value.hash)).toEqual({ revoked: true });
      expect(await isListedAsRevoked(kind)).toBe(true);
      expect(await committed(id)).toEqual({ ...first, projected_version: 2 });
      await eventually(async () =>
        expect(await auth.edge.lookup(value.hash)).toMatchObject({ revokedAtMs: first.revoked_at!.getTime() }),
      );
    },
  );

  it('a revocation without a repeat is in force as soon as the store is back', async () => {
    const value = minted('key');
    const { id } = await create('key', value);
    await goAway();
    await expect(auth.request('auth.keys.revoke', { tenantId, id })).rejects.toThrow(UnavailableError);
    await releaseTheLoop();
    await comeBack();
    await eventually(async () => expect(await inTheStore(value.hash)).toEqual({ revoked: true }));
    await eventually(async () => expect(await unprojected()).toBe(0));
  });

  it.each(['key', 'token'] as const)(
    'a new %s is answered all the same, because it is shown only once, and works as soon as the store is back',
    async (kind) => {
      const value = minted(kind);
      await goAway();
      const { id } = await create(kind, value);
      expect(await committed(id)).toEqual({ revoked_at: null, version: 1, projected_version: 0 });
      expect(await auth.edge.lookup(value.hash)).toBeNull();
      await releaseTheLoop();
      await comeBack();
      await eventually(async () => expect(await auth.edge.lookup(value.hash)).toMatchObject({ id, version: 1 }));
    },
  );

  it('a store that hangs holds no request beyond its deadline, and every change is committed at once', async () => {
    await releaseTheLoop();
    const value = minted('key');
    const { id } = await create('key', value);
    // With the time limits of a service.
    const limited = await startAuth(
      database.url,
      (applicationName) => new PostgresCredentialStore({ url: database.url, applicationName }),
    );
    const revoke = () => limited.request('auth.keys.revoke', { tenantId, id }, { deadlineMs: 15_000 });
    try {
      await database.query('BEGIN');
      await database.query('LOCK TABLE credentials.last_change');
      // Each request is refused while the store still hangs.
      const firstRefused = expect(revoke()).rejects.toThrow('could not be answered');
      await eventually(async () => expect(await unprojected()).toBe(1));
      // Now a loop is in the middle of a batch with this key. Another change of the key does not wait for it.
      await eventually(async () => expect(await database.query(PROJECTING)).toHaveLength(1));
      await expect(revoke()).rejects.toThrow('could not be answered');
      await firstRefused;
      expect(await unprojected()).toBe(1);
      await database.query('COMMIT');
    } finally {
      await limited.close();
    }
    await eventually(async () => expect(await auth.edge.lookup(value.hash)).toMatchObject({ version: 2 }));
    await eventually(async () => expect(await unprojected()).toBe(0));
  });
});

it('auth writes all records again to a store that lost them, each with its newest version', async () => {
  const { hash, last4 } = minted('key');
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
  await auth.request('auth.keys.revoke', { tenantId, id });
  const hashes = await leaveBehind(1_100);
  await eventually(async () => expect(await unprojected()).toBe(0));
  expect(await auth.projector.refillIfLost()).toBe(0);
  await emptyTheStore();
  await eventually(async () => expect(await auth.edge.lookup(hash)).toBeNull());
  expect(await auth.projector.projectAll()).toBeGreaterThan(1_100);
  expect(await auth.edge.lookup(hash)).toMatchObject({ id, version: 2, revokedAtMs: expect.any(Number) });
  expect((await Promise.all(hashes.map((one) => auth.edge.lookup(one)))).every(Boolean)).toBe(true);
});

it.each(['revoked', 'expired'] as const)(
  'auth does not take a store for emptied because it forgot what was %s long ago',
  async (how) => {
    const { hash, last4 } = minted('key');
    const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
    const forget = `DELETE FROM credentials.credential WHERE hash = $1`;
    const set = (days: number) =>
      database.query(
        how === 'revoked'
          ? `UPDATE auth.credential SET revoked_at = now() - $2 * interval '1 day' WHERE id = $1 AND revoked_at IS NULL`
          : `UPDATE auth.credential SET expires_at = now() - $2 * interval '1 day' WHERE id = $1`,
        [id, days],
      );
    await set(31);
    await database.query(forget, [hash]);
    expect(await auth.projector.refillIfLost()).toBe(0);
    if (how === 'revoked') return;
    // The store cannot have forgotten this one yet, so its absence is noticed.
    await set(1);
    expect(await auth.projector.refillIfLost()).toBeGreaterThan(0);
  },
);

it('auth lets the store forget outdated records without a write: a batch a round, and once a minute', async () => {
  let batches = 0;
  const projector = { keepFilled: () => {}, projectDue: async () => 0, refillIfLost: async () => 0 };
  const forget = () => Promise.resolve(++batches < 3);
  const loop = new ProjectionLoop(Object.assign(projector, { forget }) as unknown as Projector);
  const { pause } = loop as unknown as { pause: WakeableDelay };
  const now = jest.spyOn(performance, 'now').mockReturnValue(1_000);
  const roundsUntil = async (count: number) => {
    for (; batches < count; pause.wake()) await new Promise(setImmediate);
  };
  try {
    loop.onApplicationBootstrap();
    await roundsUntil(3);
    now.mockReturnValue(1_000 + FORGET_INTERVAL_MS - 1);
    for (let round = 0; round < 20; round++) {
      pause.wake();
      await new Promise(setImmediate);
    }
    expect(batches).toBe(3);
    now.mockReturnValue(1_000 + FORGET_INTERVAL_MS);
    await roundsUntil(4);
  } finally {
    now.mockRestore();
    await loop.beforeApplicationShutdown();
  }
});

it('a process that starts on an emptied store refills it', async () => {
  const { hash, last4 } = minted('key');
  await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
  await emptyTheStore();
  const second = await startAuth(database.url);
  try {
    await eventually(async () => expect(await second.edge.lookup(hash)).toMatchObject({ tenantId }));
  } finally {
    await second.close();
  }
});

it('two processes share the work and reach the same outcome', async () => {
  const second = await startAuth(database.url);
  try {
    const { hash, last4 } = minted('key');
    const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
    expect((await second.request('auth.keys.list', { tenantId })).data).toMatchObject([{ id, status: 'active' }]);
    const hashes = await leaveBehind(1_200);
    const [one, other] = await Promise.all([
      auth.request('auth.keys.revoke', { tenantId, id }),
      second.request('auth.keys.revoke', { tenantId, id }),
    ]);
    expect(one).toEqual(other);
    await eventually(async () => expect(await unprojected()).toBe(0));
    for (const { edge } of [auth, second]) {
      expect(await edge.lookup(hash)).toMatchObject({ version: 2 });
      expect((await Promise.all(hashes.map((left) => edge.lookup(left)))).every(Boolean)).toBe(true);
    }
  } finally {
    await second.close();
  }
});

async function emptyTheStore(): Promise<void> {
  await database.query('TRUNCATE credentials.credential');
  await database.query('UPDATE credentials.last_change SET number = 0');
}
