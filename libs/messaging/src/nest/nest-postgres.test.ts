import { useTestDatabase } from '@tollgate/testing';
import { messagesSuite } from '../messages.suite';
import { PostgresStore } from '../postgres/test-store.suite';
import { requestsSuite } from '../requests.suite';
import { throughNest } from './nest-messages.suite';

const database = useTestDatabase();
const createStore = () => throughNest(Promise.resolve(new PostgresStore(database)));

messagesSuite('Nest over Postgres', createStore);
requestsSuite('Nest over Postgres', 'same-instance', createStore);
