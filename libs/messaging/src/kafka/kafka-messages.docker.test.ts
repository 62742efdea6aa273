import { useKafka } from '@tollgate/testing';
import { messagesSuite } from '../messages.suite';
import { requestsSuite } from '../requests.suite';
import { KafkaStore, TEST_BROKER } from './test-store.fixture';

const kafka = useKafka(TEST_BROKER);
const createStore = () => KafkaStore.create(kafka.brokers);

messagesSuite('Kafka', createStore);
requestsSuite('Kafka', 'other-instances', createStore);
