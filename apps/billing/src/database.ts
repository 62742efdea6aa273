import { join } from 'node:path';
import { connectionConfig, openDataSource, sqlState } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import { Client } from 'pg';
import type { DataSource } from 'typeorm';

export const MIGRATIONS = { schema: 'billing', directory: join(__dirname, 'migrations') };

/** May append to the journal and nothing else: migration 003. */
export const LEDGER_ROLE = 'tollgate_billing';
/** Four batches at the same time, the poster, the outbox relay, and requests beside them. */
export const POOL_SIZE = 10;

/** SQLSTATE: invalid_parameter_value (no such role), insufficient_privilege (not a member of it). */
const ROLE_REFUSED = new Set(['22023', '42501']);

/** The service's data source, under the ledger role wherever the server let the migration make it. */
export async function openBillingDatabase(url: string): Promise<DataSource> {
  const options = { url, schema: MIGRATIONS.schema, applicationName: 'tollgate-billing' };
  if (await mayTakeRole(url)) return openDataSource({ ...options, poolSize: POOL_SIZE, role: LEDGER_ROLE });
  logger('billing').warn(
    { role: LEDGER_ROLE },
    'the database user may not take on this role: the journal is append-only by triggers alone',
  );
  return openDataSource({ ...options, poolSize: POOL_SIZE });
}

async function mayTakeRole(url: string): Promise<boolean> {
  const client = new Client(connectionConfig({ url, schema: MIGRATIONS.schema, applicationName: 'tollgate-billing' }));
  await client.connect();
  try {
    await client.query(`SET ROLE ${LEDGER_ROLE}`);
    return true;
  } catch (error) {
    if (ROLE_REFUSED.has(sqlState(error) ?? '')) return false;
    throw error;
  } finally {
    await client.end();
  }
}
