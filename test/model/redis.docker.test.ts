import { RedisAdmissionStore } from '@tollgate/admission';
import { useRedis, useTestDatabase } from '@tollgate/testing';
import Redis from 'ioredis';
import { MODEL_CALL_MS, realStoresSuite } from './real';

let client: Redis;
// Before Redis is removed.
afterAll(() => client.quit());
const database = useTestDatabase();
const redis = useRedis();

describe('on PostgreSQL, with admission on a Redis that is sometimes emptied', () => {
  realStoresSuite(
    database,
    async (now, onUnknownTenant) => {
      const options = { url: redis.url, now, onUnknownTenant, callTimeoutMs: MODEL_CALL_MS };
      const admission = new RedisAdmissionStore(options);
      await admission.start();
      client = new Redis(redis.url);
      return { admission, empty: async () => void (await client.flushall()) };
    },
    true,
  );
});
