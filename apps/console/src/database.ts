import { join } from 'node:path';
import { openServiceDataSource, ServiceDataSource } from '@tollgate/postgres';

export const MIGRATIONS = { schema: 'console', directory: join(__dirname, 'migrations') };

/** People use the console, so a few connections are enough. */
export const POOL_SIZE = 5;

/** A separate class, so that each service in one process injects its own data source. */
export class ConsoleDataSource extends ServiceDataSource {}

export function openConsoleDatabase(url: string): Promise<ConsoleDataSource> {
  return openServiceDataSource({ url, schema: MIGRATIONS.schema, poolSize: POOL_SIZE });
}
