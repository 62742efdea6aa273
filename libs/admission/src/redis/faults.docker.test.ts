import { join } from 'node:path';
import { readFunctionLibrary } from '@tollgate/redis';
import { configureLogging } from '@tollgate/runtime';
import { elapsedMs, eventually, useRedis } from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/store.fixture';
import {
  BALANCE,
  open,
  RECOVERY_LIMIT_MS,
  recoveredAfterMs,
  REFUSAL_LIMIT_MS,
  REFUSED_AT_ONCE_MS,
  refusedAfterMs,
} from './faults.fixture';
import { RedisAdmissionStore } from './redis-admission-store';

/** The release before `sweep` returned the number of remaining holds, and before `restore` took budgets. */
const EARLIER_RELEASE = join(__dirname, '../../test/earlier-release');

// Unavailable servers are the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

describe('one Redis', () => {
  const redis = useRedis();
  const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);

  it('that is silent makes calls get 503 in a second, then at once, and serves within 2 s of its return', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    const id = await f.hold();
    await redis.pause();
    const first = await refusedAfterMs(() => client.admit(f.request()));
    // The best of five, because the machine may be busy at one moment.
    let second = Infinity;
    for (let n = 0; n < 5; n++)
      second = Math.min(second, await refusedAfterMs(() => client.settle({ event: f.event(id, TOKEN_NANOS) })));
    await redis.unpause();
    const recovered = await recoveredAfterMs(f, client);
    process.stderr.write(
      `silent Redis: refused after ${first.toFixed()} ms, then ${second.toFixed()} ms; ` +
        `back ${recovered.toFixed()} ms\n`,
    );
    expect(first).toBeLessThan(REFUSAL_LIMIT_MS);
    expect(second).toBeLessThan(REFUSED_AT_ONCE_MS);
    expect(recovered).toBeLessThan(RECOVERY_LIMIT_MS);
    expect(await client.settle({ event: f.event(id, TOKEN_NANOS) })).toMatchObject({ kind: 'settled' });
    await close();
  });

  it('that is killed makes calls get 503 at once, and is back within 2 s with everything acknowledged', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    const settled = await f.hold();
    await f.settle(settled, 3n * TOKEN_NANOS);
    const running = await f.hold();
    // Acknowledged a second ago: appendfsync everysec.
    await cli('BGREWRITEAOF');
    await eventually(async () => expect(await cli('INFO', 'persistence')).toMatch(/aof_rewrite_in_progress:0/));
    await redis.kill();
    const refused = await refusedAfterMs(() => client.admit(f.request()));
    await redis.start();
    const recovered = await recoveredAfterMs(f, client);
    process.stderr.write(`killed Redis: refused after ${refused.toFixed()} ms; back ${recovered.toFixed()} ms\n`);
    expect(refused).toBeLessThan(REFUSAL_LIMIT_MS);
    expect(recovered).toBeLessThan(RECOVERY_LIMIT_MS);
    expect(await f.sums()).toMatchObject({ settledNanos: 3n * TOKEN_NANOS, balanceNanos: BALANCE });
    expect(await client.settle({ event: f.event(running, TOKEN_NANOS) })).toMatchObject({ repeated: false });
    await close();
  });

  it('that is cut off makes calls get 503 within a second, and serves within 2 s of its return', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    await f.hold();
    await redis.disconnect();
    expect(await refusedAfterMs(() => client.admit(f.request()))).toBeLessThan(REFUSAL_LIMIT_MS);
    await redis.connect();
    expect(await recoveredAfterMs(f, client)).toBeLessThan(RECOVERY_LIMIT_MS);
    await close();
  });

  it.each([-900_000, 900_000])('is swept after a gateway died whose clock was wrong by %p ms', async (wrongMs) => {
    const now = Date.now.bind(Date);
    const wrongly = async <T>(work: () => Promise<T>): Promise<T> => {
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + wrongMs);
      return work().finally(() => clock.mockRestore());
    };
    const [{ f, close }, sweeper] = [await open({ url: redis.url, leaseMs: 300 }), await open({ url: redis.url })];
    const sweep = () => f.sweep(60_000, sweeper.f.store);
    await wrongly(() => f.setBalance(BALANCE));
    // The tenant has no holds at this moment.
    expect(await sweep()).toEqual([]);
    const id = await wrongly(() => f.hold());
    await f.progress(id, 7);
    await close();
    await eventually(async () => expect(await sweep()).toMatchObject([{ id, completionTokens: 7 }]));
    await sweeper.close();
  });

  it('that is full admits nobody, and lets running requests finish', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    const [id, other] = [await f.hold(), await f.hold()];
    await cli('CONFIG', 'SET', 'maxmemory', '1');
    await refusedAfterMs(() => client.admit(f.request()));
    const { tenantId } = f;
    expect(await client.extend({ id, tenantId, wantNanos: TOKEN_NANOS, minNanos: TOKEN_NANOS })).toMatchObject({
      kind: 'extended',
    });
    expect(await f.progress(id, 1)).toBe(true);
    expect(await client.settle({ event: f.event(id, TOKEN_NANOS) })).toMatchObject({ repeated: false });
    expect(await client.void({ id: other, tenantId })).toBe(true);
    await cli('CONFIG', 'SET', 'maxmemory', '0');
    expect(await client.admit(f.request())).toMatchObject({ kind: 'held' });
    await close();
  });

  it('that lost its functions gets them again without an error for the caller', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    await cli('FUNCTION', 'FLUSH');
    const results = await Promise.all([
      client.admit(f.request()),
      client.void({ id: await f.hold(), tenantId: f.tenantId }),
      f.sweep(),
    ]);
    expect(results).toMatchObject([{ kind: 'held' }, true, []]);
    await close();
  });

  it('that cannot be written is not ready, still serves reads, and is ready when it can be written', async () => {
    const { f, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    await f.store.check();
    for (const [setting, bad, good, reason] of [
      ['maxmemory', '1', '0', 'OOM'],
      ['min-replicas-to-write', '1', '0', 'NOREPLICAS'],
    ] as const) {
      await cli('CONFIG', 'SET', setting, bad);
      await eventually(() =>
        expect(f.store.check()).rejects.toThrow(new RegExp(`Redis cannot be written: .*${reason}`)),
      );
      expect(await f.sums()).toMatchObject({ balanceNanos: BALANCE });
      await cli('CONFIG', 'SET', setting, good);
      await eventually(() => f.store.check());
    }
    await cli('REPLICAOF', '127.0.0.1', '1');
    await eventually(() => expect(f.store.check()).rejects.toThrow(/READONLY/));
    await cli('REPLICAOF', 'NO', 'ONE');
    await eventually(() => f.store.check());
    await close();
  });

  it('that lacks the replicas which settlements wait for is not ready', async () => {
    const { f, close } = await open({ url: redis.url, settledReplicas: 1 });
    await expect(f.store.check()).rejects.toThrow(/only 0 of 1 replicas/);
    await close();
  });

  it('serves an earlier release of the functions and this one at the same time, on the same data', async () => {
    const earlier = readFunctionLibrary('tollgate_admission_v1', EARLIER_RELEASE);
    const [old, young] = [await open({ url: redis.url, library: earlier }), await open({ url: redis.url })];
    young.f.tenantId = old.f.tenantId;
    await old.f.setBalance(BALANCE);
    // In both directions: what one release admits, the other extends, settles, voids and releases.
    for (const [first, second] of [
      [old.f, young.f],
      [young.f, old.f],
    ] as const) {
      const [settled, voided, extended] = [await first.hold(), await first.hold(), await first.hold()];
      const { tenantId } = first;
      expect(await second.settle(settled, TOKEN_NANOS)).toMatchObject({ repeated: false });
      expect(await first.settle(settled, TOKEN_NANOS)).toMatchObject({ repeated: true });
      expect(await second.void(voided)).toBe(true);
      expect(await first.sums()).toEqual(await second.sums());
      const more = { id: extended, tenantId, wantNanos: 5n * TOKEN_NANOS, minNanos: TOKEN_NANOS };
      expect(await second.store.extend([more])).toMatchObject([{ kind: 'extended', grantedNanos: 5n * TOKEN_NANOS }]);
      expect(await second.progress(extended, 1)).toBe(true);
      expect(await first.settle(extended, TOKEN_NANOS)).toMatchObject({ repeated: false });
      await second.setBalance(BALANCE, { releases: [settled] });
      // The age of what the earlier release admitted is unknown, and its ends change no mean.
      const running = await young.f.hold();
      expect(await young.f.store.expectedEnds([tenantId])).toMatchObject([[{ keyId: young.f.keyId }]]);
      expect(await old.f.void(running)).toBe(true);
      expect(await young.f.store.expectedEnds([tenantId])).toEqual([[]]);
      expect(await first.sums()).toEqual(await second.sums());
    }
    expect(await old.f.sums()).toMatchObject({ settledHolds: 2, settledNanos: 2n * TOKEN_NANOS, pendingHolds: 0 });
    expect(await young.f.sweep()).toEqual([]);
    const libraries = (await cli('FUNCTION', 'LIST')).match(/tollgate_admission_v1_[0-9a-f]{8}$/gm);
    expect(libraries).toHaveLength(2);
    await Promise.all([old.close(), young.close()]);
  });
});

describe('a wrong Redis', () => {
  const redis = useRedis({ args: ['--rename-command', 'FUNCTION', ''] });
  const locked = useRedis({ args: ['--requirepass', 'secret'] });
  const startOf = async (url: string) => {
    const store = new RedisAdmissionStore({ url });
    let failure = 'started';
    const tookMs = await elapsedMs(async () => {
      await store.start().catch((error: Error) => (failure = error.message));
      await store.close();
    });
    expect(tookMs).toBeLessThan(10_000);
    return failure;
  };

  it('stops the start with one line that names the setting and the cure', async () => {
    expect(await startOf(redis.url)).toMatch(
      /^REDIS_URL \(redis:\/\/127.0.0.1:\d+\): this server has no Functions: Redis 7.0 or newer is needed\.$/,
    );
    expect(await startOf(locked.url)).toMatch(/^REDIS_URL .*refuses this user and password/);
    expect(await startOf(locked.url.replace('//', '//:wrong@'))).toMatch(/^REDIS_URL .*refuses this user and password/);
    expect(await startOf('redis://127.0.0.1:1')).toMatch(/^REDIS_URL .*does not answer.*ECONNREFUSED/);
    expect(await startOf('redis://no-such-host.invalid')).toMatch(
      /^REDIS_URL .*does not answer.*(ENOTFOUND|EAI_AGAIN|ETIMEDOUT)/,
    );
  });

  it('works with its password, and for an ACL user with only the necessary rights', async () => {
    expect(await startOf(locked.url.replace('//', '//:secret@'))).toBe('started');
    await locked.exec([
      ...['redis-cli', '-p', String(locked.port), '-a', 'secret', 'ACL', 'SETUSER', 'tollgate', 'on', '>pass'],
      ...['~tga:*', '~tgc:*', '&tgc:*', '+@all', '-@admin', '-@dangerous', '+function', '+info'],
    ]);
    const { f, close } = await open({ url: locked.url.replace('//', '//tollgate:pass@') });
    await f.setBalance(BALANCE);
    await f.settle(await f.hold(), TOKEN_NANOS);
    expect(await f.sweep()).toEqual([]);
    expect(await f.sums()).toMatchObject({ settledHolds: 1 });
    await close();
  });
});
