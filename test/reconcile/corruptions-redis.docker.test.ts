import { askForCredit, RedisAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useRedis, useTestDatabase } from '@tollgate/testing';
import Redis from 'ioredis';
import { PatientMessages } from '../surfaces/patient-messages';
import { corruptionSuite } from './corruptions';

let admission: RedisAdmissionStore;
let client: Redis;
// Before Redis is removed. Otherwise the client would wait for the end of its connection for 2 s.
afterAll(() => Promise.all([admission.close(), client.quit()]));
const database = useTestDatabase();
const redis = useRedis();

/** Holds as lua/03_state.lua packs them. */
const PENDING = `redis.call('HSET', KEYS[1], ARGV[1],
  cmsgpack.pack('key_x', 5, 1, 1, 1, 1, false, false, 4000000000000, 1, false, '{}'))`;
const SETTLED = `redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(5, ARGV[2]))`;
const key = (tenantId: string, name: string) => `tga:{${tenantId}}:${name}`;

describe('reconcile with admission in Redis', () => {
  corruptionSuite(database, async () => {
    const messages = new PatientMessages({ url: database.url, applicationName: 'books-test' });
    // As in production, the store asks the books for an unknown tenant.
    const onUnknownTenant = askForCredit(messages);
    admission = new RedisAdmissionStore({ url: redis.url, onUnknownTenant, callTimeoutMs: PATIENT_CALL_MS });
    await admission.start();
    client = new Redis(redis.url);
    return {
      admission,
      messages,
      spoilers: {
        balance: async (tenantId, byNanos) =>
          void (await client.hincrby(key(tenantId, 'credit'), 'balance', String(byNanos))),
        forget: async (tenantId) => void (await client.del(key(tenantId, 'credit'))),
        pending: async (tenantId, id) => void (await client.eval(PENDING, 1, key(tenantId, 'pending'), id)),
        settled: async (event) =>
          void (await client.eval(SETTLED, 1, key(event.tenantId, 'settled'), event.id, JSON.stringify(event))),
      },
    };
  });
});
