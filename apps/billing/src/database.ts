import { join } from 'node:path';
import { openServiceDataSource, ServiceDataSource } from '@tollgate/postgres';

export const MIGRATIONS = {
  schema: 'billing',
  directory: join(__dirname, 'migrations'),
  functions: join(__dirname, 'functions'),
};

/** For four concurrent batches, the poster, the outbox relay, and requests. */
export const POOL_SIZE = 10;

/** A separate class, so that each service in one process injects its own data source. */
export class BillingDataSource extends ServiceDataSource {}

/** Its role may append to the journal and nothing else: migrations/rights.sql. */
export function openBillingDatabase(url: string): Promise<BillingDataSource> {
  return openServiceDataSource({ url, schema: MIGRATIONS.schema, poolSize: POOL_SIZE });
}
