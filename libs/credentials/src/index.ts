import { join } from 'node:path';

export * from './credential-store';
export * from './postgres/postgres-credential-store';
export * from './redis/redis-credential-store';

/** The migrations of the PostgreSQL store. */
export const MIGRATIONS = {
  schema: 'credentials',
  directory: join(__dirname, 'postgres', 'migrations'),
  functions: join(__dirname, 'postgres', 'functions'),
};
