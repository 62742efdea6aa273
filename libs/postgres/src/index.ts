export * from './database';
export * from './statements';
export * from './database-settings';
export * from './migrate';
export { openServiceDataSource, serviceRole } from './rights';
export * from './check-server';
export * from './explain-database';
export * from './start-patiently';
export * from './embedded/embedded-postgres';
