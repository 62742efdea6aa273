import { useKafka } from '@tollgate/testing';
import { messagesSuite } from '../messages.suite';
import { requestsSuite } from '../requests.suite';
import { deadLettersTests } from './consume/dead-letters.part';
import { sharedRecordsTests } from './consume/shared-records.part';
import { KafkaStore, TEST_BROKER } from './test-store.fixture';
import { topicsTests } from './admin/topics.part';

// The parts share one broker, because its start takes as long as some of them. Each test has topics of its own.
const kafka = useKafka(TEST_BROKER);
const createStore = () => KafkaStore.create(kafka.brokers);

messagesSuite('Kafka', createStore);
requestsSuite('Kafka', 'other-instances', createStore);
sharedRecordsTests(kafka);
deadLettersTests(kafka);
// Last, because its topics stay.
topicsTests(kafka);
