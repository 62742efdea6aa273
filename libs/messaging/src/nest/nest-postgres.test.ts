import { useTestDatabase } from '@tollgate/testing';
import { messagesSuite } from '../messages.suite';
import { PostgresStore } from '../postgres/test-store.fixture';
import { requestsSuite } from '../requests.suite';
import { throughNest } from './nest-messages.fixture';

const database = useTestDatabase();
const createStore = () => throughNest(Promise.resolve(new PostgresStore(database)));

messagesSuite('Nest over Postgres', createStore);
requestsSuite('Nest over Postgres', 'same-instance', createStore);
