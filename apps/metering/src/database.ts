import { join } from 'node:path';
import { openServiceDataSource } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';

export const MIGRATIONS = {
  schema: 'metering',
  directory: join(__dirname, 'migrations'),
  functions: join(__dirname, 'functions'),
};

/** Four batches at the same time, the outbox relay, the partitions, and usage queries beside them. */
export const POOL_SIZE = 9;

export function openMeteringDatabase(databaseUrl: string): Promise<DataSource> {
  return openServiceDataSource({
    url: databaseUrl,
    schema: MIGRATIONS.schema,
    applicationName: 'tollgate-metering',
    poolSize: POOL_SIZE,
  });
}
