import { PATIENT_CALL_MS, useRedis, useRedisCluster } from '@tollgate/testing';
import { admissionSuite } from '../admission.suite';
import type { OpenStore } from '../suite/store.fixture';
import { RedisAdmissionStore } from './redis-admission-store';

const opens =
  (url: () => string): OpenStore =>
  async (options) => {
    const store = new RedisAdmissionStore({ url: url(), callTimeoutMs: PATIENT_CALL_MS, ...options });
    await store.start();
    return store;
  };

describe('one server', () => {
  const redis = useRedis();
  admissionSuite(
    'redis',
    opens(() => redis.url),
  );
});

describe('a cluster of three', () => {
  const cluster = useRedisCluster();
  admissionSuite(
    'redis cluster',
    opens(() => `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`),
  );
});
