import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/store.fixture';
import type { TenantCredit } from './credit-restorer';
import { BALANCE, open, refusedAfterMs } from './faults.fixture';

// Unknown tenants are the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

/** As Redis's connection for sweeps and balance updates. */
const BACKGROUND_TIMEOUT_MS = 10_000;

const redis = useRedis();
const books = (tenantId: string, version: bigint, balanceNanos: bigint): TenantCredit => ({
  update: { tenantId, version, balanceNanos, releases: [], suspended: false },
  spent: [],
});

/** The answers of the books, in the order in which they are asked. */
function pendingAnswers() {
  const answers: ((credit: TenantCredit) => void)[] = [];
  return { answers, ask: () => new Promise<TenantCredit>((resolve) => answers.push(resolve)) };
}

describe('the books of a tenant that an emptied Redis lost', () => {
  it('restore it also if they answer after its requests were refused', async () => {
    const { answers, ask } = pendingAnswers();
    const { f, client, close } = await open({ url: redis.url, onUnknownTenant: ask });
    await refusedAfterMs(() => client.admit(f.request()));
    // Otherwise books that always take longer than a request waits would never restore it.
    await refusedAfterMs(() => client.admit(f.request()));
    expect(answers).toHaveLength(1);
    answers[0]!(books(f.tenantId, 1n, BALANCE));
    await eventually(async () => expect(await client.admit(f.request())).toMatchObject({ kind: 'held' }));
    expect(answers).toHaveLength(1);
    await close();
  });

  it('do not restore it if Redis was emptied again since they were asked', async () => {
    const { answers, ask } = pendingAnswers();
    const { f, client, close } = await open({ url: redis.url, onUnknownTenant: ask });
    const refused = refusedAfterMs(() => client.admit(f.request()));
    await eventually(() => expect(answers).toHaveLength(1));
    // What they know since is lost with it.
    const update = books(f.tenantId, 2n, TOKEN_NANOS);
    await f.store.applyBalanceUpdates([update.update]);
    await redis.exec(['redis-cli', '-p', String(redis.port), 'FLUSHALL']);
    answers[0]!(books(f.tenantId, 1n, BALANCE));
    await refused;
    const again = client.admit(f.request({ wantOutputTokens: 9, minOutputTokens: 1 }));
    await eventually(() => expect(answers).toHaveLength(2));
    answers[1]!(update);
    expect(await again).toMatchObject({ kind: 'held', outputTokens: 1 });
    await close();
  });

  it('let nobody wait for long if Redis falls silent before it has their answer', async () => {
    const { answers, ask } = pendingAnswers();
    const { f, client, close } = await open({ url: redis.url, onUnknownTenant: ask });
    const refused = refusedAfterMs(() => client.admit(f.request()));
    await eventually(() => expect(answers).toHaveLength(1));
    await redis.pause();
    try {
      answers[0]!(books(f.tenantId, 1n, BALANCE));
      expect(await refused).toBeLessThan(BACKGROUND_TIMEOUT_MS);
    } finally {
      await redis.unpause();
    }
    await eventually(async () => expect(await client.admit(f.request())).toMatchObject({ kind: 'held' }));
    await close();
  });
});
