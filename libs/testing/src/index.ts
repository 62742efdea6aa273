export * from './test-database';
export * from './eventually';
export { TestContainer } from './containers/test-container';
export * from './containers/redis';
export * from './containers/redis-group';
export * from './containers/kafka';
export * from './containers/postgres-server';
export { freePort } from './containers/free-port';
