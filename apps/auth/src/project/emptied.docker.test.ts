import { UnavailableError } from '@tollgate/contracts';
import { RedisCredentialStore, type CredentialRecord } from '@tollgate/credentials';
import { configureLogging } from '@tollgate/runtime';
import { eventually, inForceAfterMs, useRedis, useTestDatabase } from '@tollgate/testing';
import { minted, startAuth, type RunningAuth } from '../running-auth.fixture';

// Stores are emptied on purpose here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

const REVOCATION_LIMIT_MS = 1_000;
const REPLICAS = 3;
const ROUNDS = 6;
const KEYS_A_ROUND = 12;

const redis = useRedis();
const database = useTestDatabase();
const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);
let replicas: RunningAuth[];
let gateways: RedisCredentialStore[];

beforeEach(async () => {
  await cli('FLUSHALL');
  const open = () => new RedisCredentialStore({ url: redis.url });
  replicas = await Promise.all(Array.from({ length: REPLICAS }, () => startAuth(database.url, open)));
  gateways = [open(), open()];
  await Promise.all(gateways.map((gateway) => gateway.start()));
});
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  for (const replica of replicas) await replica.close();
});

/** A small generator of numbers below `bound`. The same seed gives the same run. */
function random(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/** Asks the gateways about every key without a pause, and records each answer that must not happen. */
class Watch {
  readonly wrong: string[] = [];
  /** Hash to the time at which the revocation was answered. */
  readonly revokedAt = new Map<string, number>();
  readonly hashes: string[] = [];
  worstMs = 0;
  private stopped = false;
  private running = Promise.resolve();

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      for (const gateway of gateways) await Promise.all(this.hashes.map((hash) => this.look(gateway, hash)));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  private async look(gateway: RedisCredentialStore, hash: string): Promise<void> {
    const from = performance.now();
    const revokedAt = this.revokedAt.get(hash);
    let record: CredentialRecord | null;
    try {
      record = await gateway.lookup(hash);
    } catch (error) {
      if (!(error instanceof UnavailableError)) this.wrong.push(String(error));
      return;
    }
    if (!record) this.wrong.push(`${hash} is unknown`);
    if (!record || record.revokedAtMs !== null || revokedAt === undefined) return;
    this.worstMs = Math.max(this.worstMs, from - revokedAt);
    if (from - revokedAt > REVOCATION_LIMIT_MS)
      this.wrong.push(`${hash} still in force ${(from - revokedAt).toFixed()} ms after its revocation`);
  }
}

it('all replicas refill an emptied Redis: no issued key is ever unknown, and no revocation late', async () => {
  const seed = Number(process.env['TOLLGATE_TEST_SEED'] ?? Date.now() % 2 ** 32);
  process.stderr.write(`emptied credential store: TOLLGATE_TEST_SEED=${seed}\n`);
  const below = random(seed);
  const watch = new Watch();
  const tenantId = await replicas[0]!.tenant();
  const keys: { id: string; hash: string }[] = [];
  watch.start();
  for (let round = 0; round < ROUNDS; round++) {
    const work: Promise<unknown>[] = [];
    for (let n = 0; n < KEYS_A_ROUND; n++) {
      const issue = async () => {
        const { hash, last4 } = minted('key');
        const { id } = await replicas[below(REPLICAS)]!.request('auth.keys.create', {
          tenantId,
          name: 'k',
          hash,
          last4,
        });
        keys.push({ id, hash });
        // The key is answered. From here on the gateways know it, or say that they cannot tell.
        watch.hashes.push(hash);
      };
      const revoke = async () => {
        const [key] = keys.splice(below(keys.length), 1);
        if (!key) return;
        const replica = replicas[below(REPLICAS)]!;
        // A busy machine may let the time limit of the store pass. Then the revocation is not answered.
        await eventually(() => replica.request('auth.keys.revoke', { tenantId, id: key.id }));
        watch.revokedAt.set(key.hash, performance.now());
      };
      work.push(below(3) > 0 ? issue() : revoke());
      if (below(KEYS_A_ROUND / 2) === 0) work.push(cli('FLUSHALL'));
      if (below(2) === 0) await work.at(-1);
    }
    await Promise.all(work);
  }
  const cold = new RedisCredentialStore({ url: redis.url });
  await cold.start();
  await eventually(async () => {
    for (const store of [...gateways, cold]) {
      for (const hash of watch.hashes) {
        const record = await store.lookup(hash);
        expect(record === null ? 'unknown' : record.revokedAtMs !== null).toBe(watch.revokedAt.has(hash));
      }
    }
  });
  await cold.close();
  await watch.stop();
  process.stderr.write(`revocations were in force everywhere after at most ${watch.worstMs.toFixed()} ms\n`);
  expect(watch.wrong).toEqual([]);
});

it('known keys work and unknown ones get 503 while Redis is empty and auth is down', async () => {
  const [first] = replicas as [RunningAuth];
  const tenantId = await first.tenant();
  const [known, other] = [minted('key'), minted('key')];
  for (const { hash, last4 } of [known, other])
    await first.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
  for (const gateway of gateways)
    await eventually(async () => expect(await gateway.lookup(known.hash)).toMatchObject({ tenantId }));
  for (const replica of replicas.splice(0)) await replica.close();
  await cli('FLUSHALL');
  for (const gateway of gateways) {
    await eventually(() => expect(gateway.lookup(other.hash)).rejects.toThrow(UnavailableError));
    // At once, unless the gateway's last check is so old that it must check again first.
    await eventually(async () => expect(await gateway.lookup(known.hash)).toMatchObject({ tenantId }));
  }
  replicas.push(await startAuth(database.url, () => new RedisCredentialStore({ url: redis.url })));
  for (const gateway of gateways)
    await eventually(async () => expect(await gateway.lookup(other.hash)).toMatchObject({ tenantId }));
});

it('a revocation is not answered while Redis is down, and in force everywhere a second after its answer', async () => {
  const [first, second] = replicas as [RunningAuth, RunningAuth];
  const tenantId = await first.tenant();
  const { hash, last4 } = minted('key');
  const { id } = await first.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
  for (const gateway of gateways)
    await eventually(async () => expect(await gateway.lookup(hash)).toMatchObject({ id }));
  const revoke = (by: RunningAuth) => by.request('auth.keys.revoke', { tenantId, id });
  await redis.pause();
  try {
    for (const replica of replicas) await expect(revoke(replica)).rejects.toThrow(UnavailableError);
    expect((await first.request('auth.keys.list', { tenantId })).data).toMatchObject([{ id, status: 'active' }]);
  } finally {
    await redis.unpause();
  }
  const { revokedAt } = await eventually(() => revoke(second));
  const answeredMs = performance.now();
  const cold = new RedisCredentialStore({ url: redis.url });
  try {
    await cold.start();
    await eventually(async () => expect(await cold.lookup(hash)).toMatchObject({ revokedAtMs: Date.parse(revokedAt) }));
  } finally {
    await cold.close();
  }
  for (const gateway of gateways) {
    const look = async () => gateway.lookup(hash);
    // A gateway that cannot ask the store yet lets nobody in either.
    const letsNobodyIn = async () => expect(await look().then((record) => record?.revokedAtMs, String)).not.toBe(null);
    expect(await inForceAfterMs(letsNobodyIn, answeredMs)).toBeLessThan(REVOCATION_LIMIT_MS);
    await eventually(async () => expect(await look()).toMatchObject({ revokedAtMs: Date.parse(revokedAt) }));
  }
});
