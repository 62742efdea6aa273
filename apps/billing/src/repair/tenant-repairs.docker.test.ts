import { RedisAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useRedis, useTestDatabase } from '@tollgate/testing';
import type { OpenStore } from './repairs.fixture';
import { repairsInMotionSuite } from './repairs-in-motion.suite';
import { tenantRepairsSuite } from './tenant-repairs.suite';

describe('in the admission store on Redis', () => {
  const redis = useRedis();
  const database = useTestDatabase();
  const hset = (tenantId: string, field: string, value: string) =>
    redis.exec(['redis-cli', '-p', String(redis.port), 'HSET', `tga:{${tenantId}}:credit`, field, value]);
  const openStore: OpenStore = () => ({
    store: new RedisAdmissionStore({ url: redis.url, callTimeoutMs: PATIENT_CALL_MS }),
    spoil: {
      set: (tenantId, field, value) => hset(tenantId, field, value === 'true' ? '1' : value),
      garbage: (tenantId) => hset(tenantId, 'balance', 'garbage'),
    },
  });
  tenantRepairsSuite(database, openStore);
  repairsInMotionSuite(database, openStore);
});
