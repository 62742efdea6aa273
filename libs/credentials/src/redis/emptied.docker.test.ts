import { UnavailableError } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import type { CredentialRecord } from '../credential-store';
import { aRecord } from '../credentials.suite';
import { RedisCredentialStore } from './redis-credential-store';

configureLogging({ level: 'silent', pretty: false });

const REVOCATION_LIMIT_MS = 1_000;

const redis = useRedis();
const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);
let gateway: RedisCredentialStore;
let auth: RedisCredentialStore;
/** What auth's own database has. */
let books: CredentialRecord[];
let fills: number;
/** Auth does not get further than this. */
let hold: Promise<void>;

beforeEach(async () => {
  await cli('FLUSHALL');
  books = [];
  fills = 0;
  hold = Promise.resolve();
  gateway = new RedisCredentialStore({ url: redis.url });
  auth = new RedisCredentialStore({ url: redis.url });
  await Promise.all([gateway.start(), auth.start()]);
});
afterEach(() => Promise.all([gateway.close(), auth.close()]));

/** As auth does it once it runs. */
const serve = (store: RedisCredentialStore) =>
  store.refillWith(async () => {
    fills++;
    await hold;
    await store.put(books);
  });

describe('a Redis that was emptied', () => {
  it('is filled by auth, once; until then known credentials go on and unknown ones are 503, never 401', async () => {
    const [known, other] = [aRecord(), aRecord()];
    books = [known, other];
    // Not even auth has been here: nobody may say that a value is unknown.
    await expect(gateway.lookup(aRecord().hash)).rejects.toThrow(UnavailableError);
    serve(auth);
    await eventually(async () => expect(await gateway.lookup(known.hash)).toEqual(known));
    expect(await gateway.lookup(aRecord().hash)).toBeNull();
    expect(fills).toBe(1);

    let release = (): void => {};
    hold = new Promise((resolve) => (release = resolve));
    await cli('FLUSHALL');
    await eventually(() => expect(fills).toBe(2));
    await expect(gateway.lookup(other.hash)).rejects.toThrow(UnavailableError);
    expect(gateway.lookup(known.hash)).toEqual(known);
    // A revocation is in force at once all the same.
    const revoked = { ...known, revokedAtMs: 1, version: 2 };
    books = [revoked, other];
    await auth.put([revoked]);
    await eventually(() => expect(gateway.lookup(known.hash)).toEqual(revoked), { timeoutMs: REVOCATION_LIMIT_MS });
    release();
    await eventually(async () => expect(await gateway.lookup(other.hash)).toEqual(other));
    expect(await gateway.lookup(aRecord().hash)).toBeNull();
    expect(await gateway.lookup(known.hash)).toEqual(revoked);
    expect(fills).toBe(2);
  });

  it('is filled again when it is emptied in the middle of that', async () => {
    const records = Array.from({ length: 50 }, () => aRecord());
    let release = (): void => {};
    hold = new Promise((resolve) => (release = resolve));
    auth.refillWith(async () => {
      fills++;
      await hold;
      // The first filling has written the other half before, and that is gone.
      await auth.put(fills === 1 ? records.slice(25) : records);
    });
    await eventually(() => expect(fills).toBe(1));
    await auth.put(records.slice(0, 25));
    await cli('FLUSHALL');
    release();
    await eventually(() => expect(fills).toBe(2));
    await eventually(async () => {
      const found = await Promise.all(records.map((record) => gateway.lookup(record.hash)));
      expect(found.filter((record) => record === null)).toHaveLength(0);
    });
  });

  it('is filled by two replicas of auth at the same time as by one', async () => {
    books = [aRecord()];
    const replica = new RedisCredentialStore({ url: redis.url });
    await replica.start();
    serve(auth);
    serve(replica);
    await eventually(async () => expect(await gateway.lookup(books[0]!.hash)).toEqual(books[0]));
    await replica.close();
  });

  it('was restored from an older copy: it is filled again, and memory begins anew', async () => {
    const record = aRecord();
    books = [record];
    serve(auth);
    await eventually(async () => expect(await gateway.lookup(record.hash)).toEqual(record));
    const late = aRecord();
    books = [record, late];
    await auth.put([late]);
    expect(await gateway.lookup(late.hash)).toEqual(late);
    // As it was before the last change.
    await cli('HDEL', 'tgc:{credentials}:records', late.hash);
    await cli('ZREM', 'tgc:{credentials}:changes', late.hash);
    await cli('HINCRBY', 'tgc:{credentials}:meta', 'number', '-1');
    await eventually(() => expect(fills).toBe(2));
    await eventually(async () => expect(await gateway.lookup(late.hash)).toEqual(late));
  });
});
