import { RedisAdmissionStore } from '@tollgate/admission';
import { applyTopics, KafkaMessages } from '@tollgate/messaging';
import { PATIENT_CALL_MS, useKafka, useRedis, useTestDatabase } from '@tollgate/testing';
import { TEST_IDENTITY } from '../../libs/messaging/src/kafka/sign/test-identity.fixture';
import { contentionSuite } from './contention.suite';

const database = useTestDatabase();
const redis = useRedis();
const kafka = useKafka();

describe('contention with admission on Redis and messages on Kafka', () => {
  beforeAll(() => applyTopics({ brokers: kafka.brokers, clientId: 'contention' }));

  contentionSuite(database, async () => {
    // A slow machine cannot admit ten thousand requests per gateway within the second that a request waits.
    const admission = new RedisAdmissionStore({ url: redis.url, callTimeoutMs: PATIENT_CALL_MS });
    await admission.start();
    const connection = { brokers: kafka.brokers, clientId: 'contention' };
    return { admission, messages: new KafkaMessages({ connection, identity: TEST_IDENTITY }) };
  });
});
