import { UnavailableError } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import type { CredentialRecord } from '../credential-store';
import { aRecord } from '../record.fixture';
import { RedisCredentialStore } from './redis-credential-store';

configureLogging({ level: 'silent', pretty: false });

const DAY_MS = 86_400_000;
const redis = useRedis();
const cli = async (...command: string[]) =>
  (await redis.exec(['redis-cli', '-p', String(redis.port), ...command])).trim();
const key = (name: string) => `tgc:{credentials}:${name}`;
const opened: RedisCredentialStore[] = [];
afterEach(async () => void (await Promise.all(opened.splice(0).map((store) => store.close()))));

async function open(records: readonly CredentialRecord[] = []): Promise<RedisCredentialStore> {
  const store = new RedisCredentialStore({ url: redis.url });
  opened.push(store);
  store.refillWith(() => store.put(records));
  await store.start();
  await eventually(async () => expect(await store.lookup(aRecord().hash)).toBeNull());
  return store;
}

/** Moves its last write so far into the past that it is forgotten. */
const letEnd = (hash: string) => cli('ZADD', key('ends'), '1', hash);

describe('a credential that was revoked, or has expired', () => {
  it('leaves Redis with all its traces 30 days later, without any write, and is then refused as unknown', async () => {
    const store = await open();
    const good = aRecord();
    const revokedAtMs = Date.now();
    const revoked = aRecord({ version: 2, revokedAtMs });
    await store.put([good, revoked]);
    expect(Number(await cli('ZSCORE', key('ends'), revoked.hash))).toBe(revokedAtMs + 30 * DAY_MS);
    expect(await cli('ZSCORE', key('ends'), good.hash)).toBe('');
    await letEnd(revoked.hash);
    expect(await store.forget()).toBe(false);
    for (const look of [
      ['HEXISTS', key('records')],
      ['ZRANK', key('changes')],
      ['ZRANK', key('ends')],
    ])
      expect([look[0], await cli(...look, revoked.hash)]).toEqual([look[0], look[0] === 'HEXISTS' ? '0' : '']);
    const later = await open();
    expect(await later.lookup(revoked.hash)).toBeNull();
    expect(await later.lookup(good.hash)).toMatchObject({ revokedAtMs: null });
  });

  it('is refused even when Redis is full, which accepts the revocation and forgets ended credentials', async () => {
    const store = await open();
    const [record, over] = [aRecord(), aRecord({ revokedAtMs: Date.now() })];
    await store.put([record, over]);
    await letEnd(over.hash);
    await cli('CONFIG', 'SET', 'maxmemory', '1');
    try {
      await store.put([{ ...record, version: 2, revokedAtMs: Date.now() }]);
      await store.forget();
    } finally {
      await cli('CONFIG', 'SET', 'maxmemory', '0');
    }
    const later = await open();
    expect(await later.lookup(record.hash)).toMatchObject({ version: 2 });
    expect(await later.lookup(over.hash)).toBeNull();
  });

  it('does not return: a writer whose read is too old is refused, and must read again', async () => {
    const store = await open();
    const before = aRecord();
    await store.put([{ ...before, version: 2, revokedAtMs: Date.now() }]);
    // While it is known, its version decides.
    await store.put([before], Date.now());
    expect(await (await open()).lookup(before.hash)).toMatchObject({ version: 2 });
    await letEnd(before.hash);
    const late = store.put([before], Date.now() - 16 * DAY_MS);
    await expect(late).rejects.toThrow(UnavailableError);
    // The refusal does not depend on whether it is forgotten yet.
    await store.forget();
    await expect(store.put([before], Date.now() - 16 * DAY_MS)).rejects.toThrow(UnavailableError);
    expect(await (await open()).lookup(before.hash)).toBeNull();
  });

  it('is remembered for a day after it was written again, so that every process reads the revocation', async () => {
    const store = await open();
    const revoked = aRecord({ version: 2, revokedAtMs: Date.now() - 100 * DAY_MS });
    const before = Date.now();
    await store.put([revoked]);
    expect(Number(await cli('ZSCORE', key('ends'), revoked.hash))).toBeGreaterThanOrEqual(before + DAY_MS);
  });

  it('leaves 30 days after it expired, even if it was never revoked', async () => {
    const store = await open();
    const expiresAtMs = Date.now() + DAY_MS;
    const [unused, given] = [aRecord({ expiresAtMs }), aRecord({ expiresAtMs, revokedAtMs: expiresAtMs - DAY_MS })];
    await store.put([unused, given]);
    expect(Number(await cli('ZSCORE', key('ends'), unused.hash))).toBe(expiresAtMs + 30 * DAY_MS);
    expect(Number(await cli('ZSCORE', key('ends'), given.hash))).toBe(expiresAtMs + 29 * DAY_MS);
    await letEnd(unused.hash);
    await store.forget();
    expect(await (await open()).lookup(unused.hash)).toBeNull();
  });

  it('stays if its expiry is removed, also beside the end that an earlier release kept', async () => {
    const store = await open();
    const expiring = [aRecord({ expiresAtMs: Date.now() }), aRecord({ expiresAtMs: Date.now() })];
    await store.put(expiring);
    await store.put(expiring.map((record) => ({ ...record, version: 2, expiresAtMs: null })));
    const ends = () => Promise.all(expiring.map(({ hash }) => cli('ZSCORE', key('ends'), hash)));
    expect(await ends()).toEqual(['', '']);
    await letEnd(expiring[0]!.hash);
    expect(await store.forget()).toBe(false);
    expect(await ends()).toEqual(['', '']);
    const later = await open();
    for (const { hash } of expiring) expect(await later.lookup(hash)).toMatchObject({ version: 2 });
  });

  it('leaves in bounded batches, and not within a day, if an earlier release wrote it without an end', async () => {
    await cli('FLUSHALL');
    const store = await open();
    const before = Date.now();
    const over = Array.from({ length: 450 }, (_, i) =>
      aRecord(i % 2 ? { expiresAtMs: before - 100 * DAY_MS } : { revokedAtMs: before - 100 * DAY_MS }),
    );
    const good = aRecord();
    await store.put([...over, good]);
    await cli('DEL', key('ends'));
    const ends = async () => Number(await cli('ZCARD', key('ends')));
    for (const [more, known] of [
      [true, 200],
      [true, 400],
      [false, 450],
    ])
      expect([await store.forget(), await ends()]).toEqual([more, known]);
    const [, first] = (await cli('ZRANGE', key('ends'), '0', '0', 'WITHSCORES')).split(/\s+/);
    expect(Number(first)).toBeGreaterThanOrEqual(before + DAY_MS);
    // A known end is kept.
    await letEnd(over[0]!.hash);
    await store.put([over[0]!]);
    expect([await store.forget(), await ends()]).toEqual([false, 449]);
    expect(await cli('HLEN', key('records'))).toBe('450');
  });

  it('drops the memory of a process that has read no changes for half a day', async () => {
    const known = aRecord();
    const store = await open();
    await store.put([known]);
    expect(await store.lookup(known.hash)).toMatchObject({ version: 1 });
    expect(store.size).toBe(1);
    const later = performance.now() + DAY_MS;
    const now = jest.spyOn(performance, 'now').mockReturnValue(later);
    try {
      await eventually(() => expect(store.size).toBe(0));
    } finally {
      now.mockRestore();
    }
  });
});
