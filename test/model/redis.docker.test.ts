import { RedisAdmissionStore } from '@tollgate/admission';
import { useRedis, useTestDatabase } from '@tollgate/testing';
import { realStoresSuite } from './real';

const database = useTestDatabase();
const redis = useRedis();

describe('on PostgreSQL, with admission on Redis', () => {
  realStoresSuite(database, async (now) => {
    const store = new RedisAdmissionStore({ url: redis.url, now });
    await store.start();
    return store;
  });
});
