import { useKafka } from '@tollgate/testing';
import { KafkaStore, TEST_BROKER } from '../kafka/test-store.fixture';
import { messagesSuite } from '../messages.suite';
import { requestsSuite } from '../requests.suite';
import { throughNest } from './nest-messages.fixture';

const kafka = useKafka(TEST_BROKER);
const createStore = () => throughNest(KafkaStore.create(kafka.brokers));

messagesSuite('Nest over Kafka', createStore);
requestsSuite('Nest over Kafka', 'other-instances', createStore);
