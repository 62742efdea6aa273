import { useKafka } from '@tollgate/testing';
import { KafkaStore, TEST_BROKER } from '../kafka/test-store.suite';
import { messagesSuite } from '../messages.suite';
import { requestsSuite } from '../requests.suite';
import { throughNest } from './nest-messages.suite';

const kafka = useKafka(TEST_BROKER);
const createStore = () => throughNest(KafkaStore.create(kafka.brokers));

messagesSuite('Nest over Kafka', createStore);
requestsSuite('Nest over Kafka', 'other-instances', createStore);
