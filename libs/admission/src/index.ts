import { join } from 'node:path';

export * from './admission-store';
export * from './admission-client';
export type { RunningRequest } from './signs-of-life';
export * from './postgres/postgres-admission-store';

/** Of the Postgres store. */
export const MIGRATIONS = { schema: 'admission', directory: join(__dirname, 'postgres', 'migrations') };
