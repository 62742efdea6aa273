import { useTestDatabase } from '@tollgate/testing';
import { messagesSuite } from '../messages.suite';
import { requestsSuite } from '../requests.suite';
import { PostgresStore } from './test-store.suite';

const database = useTestDatabase();
const createStore = async () => new PostgresStore(database);

messagesSuite('Postgres', createStore);
requestsSuite('Postgres', 'same-instance', createStore);
