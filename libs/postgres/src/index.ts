export * from './database';
export { databaseClock } from './database-clock';
export {
  changedRows,
  poolOf,
  query,
  queryPrepared,
  withStatementTimeout,
  type Query,
  type Statements,
} from './statements';
export { copyInOn, type CopyIn } from './copy-in';
export { auditPage, recordChange, type Change } from './audit-log';
export * from './database-settings';
export { isOutage } from './outage';
export { queryWithin } from './query-within';
export * from './migrate';
export { openServiceDataSource, serviceRole } from './rights';
export * from './check-server';
export * from './retry-on-timeout';
export * from './embedded/embedded-postgres';
