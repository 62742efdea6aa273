import { UnavailableError } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import { aRecord } from '../record.fixture';
import { RedisCredentialStore } from './redis-credential-store';

configureLogging({ level: 'silent', pretty: false });

const redis = useRedis();
const replicaOf = (...master: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), 'REPLICAOF', ...master]);

let store: RedisCredentialStore;
beforeEach(() => void (store = new RedisCredentialStore({ url: redis.url })));
afterEach(() => store.close());

describe('a server that a failover made a replica', () => {
  it('is not read, because a revocation may be missing there, until it is a primary again', async () => {
    const known = aRecord();
    store.refillWith(() => store.put([known]));
    await store.start();
    await eventually(async () => expect(await store.lookup(known.hash)).toMatchObject({ version: 1 }));
    // Its primary does not answer, so nothing arrives.
    await replicaOf('127.0.0.1', '1');
    try {
      await eventually(() => expect(refusal(known.hash)).resolves.toBeInstanceOf(UnavailableError));
      await expect(refusal(aRecord().hash)).resolves.toBeInstanceOf(UnavailableError);
    } finally {
      await replicaOf('NO', 'ONE');
    }
    await eventually(async () => expect(await store.lookup(known.hash)).toMatchObject({ version: 1 }));
  });

  it('is noticed by the check for changes, so that look-ups need not ask for the role of the server', async () => {
    store.refillWith(async () => {});
    await store.start();
    await eventually(async () => expect(await store.lookup(aRecord().hash)).toBeNull());
    const asked = async () => {
      const stats = await redis.exec(['redis-cli', '-p', String(redis.port), 'INFO', 'commandstats']);
      return Number(/cmdstat_info:calls=(\d+)/.exec(stats)![1]);
    };
    const before = await asked();
    const lookups = 1_000;
    for (let n = 0; n < lookups; n++) expect(await store.lookup(aRecord().hash)).toBeNull();
    // The checks for changes ask meanwhile.
    expect((await asked()) - before).toBeLessThan(lookups);
  });
});

/** The error of a look-up, or null. */
async function refusal(hash: string): Promise<unknown> {
  try {
    await store.lookup(hash);
    return null;
  } catch (error) {
    return error;
  }
}
