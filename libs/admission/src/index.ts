import { HOLDS_SCHEMA } from '@tollgate/postgres';
import { join } from 'node:path';

export * from './admission-store';
export { parseBalanceUpdate, validateBalanceUpdate } from './balance-update';
export * from './client/admission-client';
export { HoldDeadline } from './client/hold-deadline';
export type { RunningRequest } from './client/hold-heartbeat';
export * from './postgres/postgres-admission-store';
export { admissionLibrary } from './redis/admission-library';
export type { RedisAdmissionOptions } from './redis/redis-admission-options';
export * from './redis/redis-admission-store';
export { askForCredit, askForSpent } from './redis/ask-for-credit';
export type { AskForCredit, TenantCredit } from './redis/credit-restorer';
export { TenantUnknownError, type ItemFailure } from './item-failures';

/** The migrations of the PostgreSQL store. */
export const MIGRATIONS = {
  schema: HOLDS_SCHEMA,
  directory: join(__dirname, 'postgres', 'migrations'),
  functions: join(__dirname, 'postgres', 'functions'),
};
