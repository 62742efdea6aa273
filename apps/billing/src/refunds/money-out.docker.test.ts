import { RedisAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useRedis } from '@tollgate/testing';
import { lastCentSuite } from './last-cent.suite';
import { moneyOutSuite } from './money-out.suite';

describe('beside the admission store on Redis', () => {
  const redis = useRedis();
  const open = () => new RedisAdmissionStore({ url: redis.url, callTimeoutMs: PATIENT_CALL_MS });
  moneyOutSuite(open);
  lastCentSuite(open);
});
