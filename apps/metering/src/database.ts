import { join } from 'node:path';
import { openServiceDataSource } from '@tollgate/postgres';
import { DataSource } from 'typeorm';

export const MIGRATIONS = {
  schema: 'metering',
  directory: join(__dirname, 'migrations'),
  functions: join(__dirname, 'functions'),
};

/** Four batches at the same time, the outbox relay, the partitions, and usage queries beside them. */
export const POOL_SIZE = 9;

/** Own class, so that in one process with other services each gets its own data source. */
export class MeteringDataSource extends DataSource {}

export function openMeteringDatabase(databaseUrl: string): Promise<MeteringDataSource> {
  return openServiceDataSource({
    url: databaseUrl,
    schema: MIGRATIONS.schema,
    applicationName: 'tollgate-metering',
    poolSize: POOL_SIZE,
  });
}
