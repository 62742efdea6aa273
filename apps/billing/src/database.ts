import { join } from 'node:path';
import { openServiceDataSource, serviceRole } from '@tollgate/postgres';
import { DataSource } from 'typeorm';

export const MIGRATIONS = {
  schema: 'billing',
  directory: join(__dirname, 'migrations'),
  functions: join(__dirname, 'functions'),
};

/** May append to the journal and nothing else: migrations/rights.sql. */
export const LEDGER_ROLE = serviceRole(MIGRATIONS.schema);
/** Four batches at the same time, the poster, the outbox relay, and requests beside them. */
export const POOL_SIZE = 10;

/** Own class, so that in one process with other services each gets its own data source. */
export class BillingDataSource extends DataSource {}

export function openBillingDatabase(url: string): Promise<BillingDataSource> {
  return openServiceDataSource({
    url,
    schema: MIGRATIONS.schema,
    applicationName: 'tollgate-billing',
    poolSize: POOL_SIZE,
  });
}
