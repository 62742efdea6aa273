import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '@tollgate/contracts';
import { functionLibrary } from '@tollgate/redis';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/fixture.suite';
import {
  BALANCE,
  open,
  RECOVERY_LIMIT_MS,
  recoveredAfterMs,
  REFUSAL_LIMIT_MS,
  REFUSED_AT_ONCE_MS,
  refusedAfterMs,
} from './faults.suite';
import { RedisAdmissionStore } from './redis-admission-store';

// Servers that are away are the subject here; each would be a warning.
configureLogging({ level: 'silent', pretty: false });

describe('one Redis', () => {
  const redis = useRedis();
  const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);

  it('that is silent: 503 within a second, then at once; back within two seconds of its return', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.news(BALANCE);
    const id = await f.hold();
    await redis.pause();
    const first = await refusedAfterMs(() => client.admit(f.request()));
    const second = await refusedAfterMs(() => client.settle({ event: f.event(id, TOKEN_NANOS) }));
    await redis.unpause();
    const recovered = await recoveredAfterMs(f, client);
    process.stderr.write(
      `silent Redis: refused after ${first.toFixed()} ms, then ${second.toFixed()} ms; back ${recovered.toFixed()} ms\n`,
    );
    expect(first).toBeLessThan(REFUSAL_LIMIT_MS);
    expect(second).toBeLessThan(REFUSED_AT_ONCE_MS);
    expect(recovered).toBeLessThan(RECOVERY_LIMIT_MS);
    expect(await client.settle({ event: f.event(id, TOKEN_NANOS) })).toMatchObject({ kind: 'settled' });
    await close();
  });

  it('that is killed: 503 at once; back within two seconds of its return, with all that it acknowledged', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.news(BALANCE);
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

  it('that is cut off: 503 within a second; back within two seconds of its return', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.news(BALANCE);
    await f.hold();
    await redis.disconnect();
    expect(await refusedAfterMs(() => client.admit(f.request()))).toBeLessThan(REFUSAL_LIMIT_MS);
    await redis.connect();
    expect(await recoveredAfterMs(f, client)).toBeLessThan(RECOVERY_LIMIT_MS);
    await close();
  });

  it('that lost its functions gets them again, unnoticed', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.news(BALANCE);
    await cli('FUNCTION', 'FLUSH');
    const results = await Promise.all([
      client.admit(f.request()),
      client.void({ id: await f.hold(), tenantId: f.tenantId }),
      f.sweep(),
    ]);
    expect(results).toMatchObject([{ kind: 'held' }, true, []]);
    await close();
  });

  it('serves two releases of the functions at the same time, on the same data', async () => {
    const directory = join(__dirname, 'lua');
    const code = readdirSync(directory)
      .sort()
      .map((file) => readFileSync(join(directory, file), 'utf8'));
    const next = functionLibrary('tollgate_admission_v1', `${code.join('\n')}\n-- another release`);
    const [old, young] = [await open({ url: redis.url }), await open({ url: redis.url, library: next })];
    young.f.tenantId = old.f.tenantId;
    await old.f.news(BALANCE);
    for (let round = 0; round < 5; round++) {
      const [a, b] = [await old.f.hold(), await young.f.hold()];
      expect(await old.f.settle(b, TOKEN_NANOS)).toMatchObject({ repeated: false });
      expect(await young.f.settle(a, TOKEN_NANOS)).toMatchObject({ repeated: false });
    }
    expect(await old.f.sums()).toEqual(await young.f.sums());
    expect(await old.f.sums()).toMatchObject({ settledHolds: 10, settledNanos: 10n * TOKEN_NANOS });
    const libraries = (await cli('FUNCTION', 'LIST')).match(/tollgate_admission_v1_[0-9a-f]{8}$/gm);
    expect(libraries).toHaveLength(2);
    await Promise.all([old.close(), young.close()]);
  });
});

describe('an emptied Redis', () => {
  const redis = useRedis();
  const empty = () => redis.exec(['redis-cli', '-p', String(redis.port), 'FLUSHALL']);

  it('asks for the credit of a tenant at its first request, once for all that wait, and knows budgets again', async () => {
    let asked = 0;
    const budgeted = newId('key');
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: (tenantId) => {
        asked++;
        return Promise.resolve({
          news: {
            tenantId,
            version: 7n,
            balanceNanos: 50n * TOKEN_NANOS,
            releases: [],
            suspended: false,
            budgets: [{ keyId: budgeted, version: 3n, nanos: 5n * TOKEN_NANOS }],
          },
          spent: {
            month: new Date().toISOString().slice(0, 7),
            tenantNanos: 9n * TOKEN_NANOS,
            keys: [{ keyId: f.keyId, nanos: 8n * TOKEN_NANOS }],
          },
        });
      },
    });
    await f.news(100n * TOKEN_NANOS);
    const lost = await f.hold();
    await empty();
    const requests = Array.from({ length: 5 }, () => f.request({ minOutputTokens: 10 }));
    const results = await Promise.all(requests.map((request) => client.admit(request)));
    expect(results.map((result) => result.kind)).toEqual(Array(5).fill('held'));
    // Once at the first request of a tenant that news had told of, in the background, and once because it was lost.
    expect(asked).toBe(2);
    expect(await f.sums()).toMatchObject({ version: 7n, balanceNanos: 50n * TOKEN_NANOS, pendingHolds: 5 });
    await Promise.all(requests.map(({ draft }) => client.void({ id: draft.id, tenantId: f.tenantId })));
    // 8 of a budget of 10 are spent already.
    expect(await client.admit(f.request({ keyBudgetNanos: 10n * TOKEN_NANOS }))).toMatchObject({ outputTokens: 2 });
    const clamped = f.request({ keyId: budgeted });
    expect(await client.admit(clamped)).toMatchObject({ outputTokens: 5 });
    await client.void({ id: clamped.draft.id, tenantId: f.tenantId });
    // What was lost with it cannot be settled any more.
    expect(await client.settle({ event: f.event(lost, TOKEN_NANOS) })).toEqual({ kind: 'forbidden' });
    // Its holds are swept, though the registry was emptied too.
    const short = await open({ url: redis.url, leaseMs: 1 });
    short.f.tenantId = f.tenantId;
    await short.f.hold();
    await eventually(async () => {
      await f.sweep();
      expect((await f.sums()).pendingHolds).toBe(1);
    });
    await Promise.all([close(), short.close()]);
  });

  it('refuses with 503, and never with a false 402, as long as nobody tells', async () => {
    let told: null | 'nobody' = 'nobody';
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: () => (told ? Promise.reject(new Error('billing is away')) : Promise.resolve(null)),
    });
    await refusedAfterMs(() => client.admit(f.request()));
    // Others are served meanwhile.
    const known = await open({ url: redis.url });
    await known.f.news(BALANCE);
    expect(await client.admit(f.request({ tenantId: known.f.tenantId }))).toMatchObject({ kind: 'held' });
    // A tenant that the books do not know has no credit.
    told = null;
    expect(await client.admit(f.request())).toMatchObject({ reason: 'credit_exhausted' });
    expect(await client.admit(f.request())).toMatchObject({ reason: 'credit_exhausted' });
    await Promise.all([close(), known.close()]);
  });
});

describe('a wrong Redis', () => {
  const redis = useRedis({ args: ['--rename-command', 'FUNCTION', ''] });
  const locked = useRedis({ args: ['--requirepass', 'secret'] });
  const startOf = async (url: string) => {
    const store = new RedisAdmissionStore({ url });
    const from = performance.now();
    const failure = await store.start().then(
      () => 'started',
      (error: Error) => error.message,
    );
    await store.close();
    expect(performance.now() - from).toBeLessThan(10_000);
    return failure;
  };

  it('stops the start with one line that names the setting and the cure', async () => {
    expect(await startOf(redis.url)).toMatch(
      /^REDIS_URL \(redis:\/\/127.0.0.1:\d+\): this server has no Functions; Redis 7.0 or newer is needed$/,
    );
    expect(await startOf(locked.url)).toMatch(/^REDIS_URL .*refuses this user and password/);
    expect(await startOf(locked.url.replace('//', '//:wrong@'))).toMatch(/^REDIS_URL .*refuses this user and password/);
    expect(await startOf('redis://127.0.0.1:1')).toMatch(/^REDIS_URL .*does not answer.*ECONNREFUSED/);
    expect(await startOf('redis://no-such-host.invalid')).toMatch(/^REDIS_URL .*does not answer.*ENOTFOUND|EAI_AGAIN/);
  });

  it('is right with its password, and for an ACL user that has only what is needed', async () => {
    expect(await startOf(locked.url.replace('//', '//:secret@'))).toBe('started');
    await locked.exec([
      ...['redis-cli', '-p', String(locked.port), '-a', 'secret', 'ACL', 'SETUSER', 'tollgate', 'on', '>pass'],
      ...['~tga:*', '~tgc:*', '&tgc:*', '+@all', '-@admin', '-@dangerous', '+function', '+info'],
    ]);
    const { f, close } = await open({ url: locked.url.replace('//', '//tollgate:pass@') });
    await f.news(BALANCE);
    await f.settle(await f.hold(), TOKEN_NANOS);
    expect(await f.sweep()).toEqual([]);
    expect(await f.sums()).toMatchObject({ settledHolds: 1 });
    await close();
  });
});
