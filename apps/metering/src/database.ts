import { join } from 'node:path';
import { openServiceDataSource, ServiceDataSource } from '@tollgate/postgres';

export const MIGRATIONS = {
  schema: 'metering',
  directory: join(__dirname, 'migrations'),
  functions: join(__dirname, 'functions'),
};

/** For four concurrent batches, the outbox relay, the partitions, and usage queries (query/usage-reads.ts). */
export const POOL_SIZE = 9;

/** A separate class, so that each service in one process injects its own data source. */
export class MeteringDataSource extends ServiceDataSource {}

export function openMeteringDatabase(url: string): Promise<MeteringDataSource> {
  return openServiceDataSource({ url, schema: MIGRATIONS.schema, poolSize: POOL_SIZE });
}
