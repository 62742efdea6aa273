import { join } from 'node:path';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { openServiceDataSource, poolOf } from '@tollgate/postgres';
import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';

export const MIGRATIONS = { schema: 'console', directory: join(__dirname, 'migrations') };

/** People use the console, so a few connections are enough. */
export const POOL_SIZE = 5;

/** The connections to the schema `console`. */
@Injectable()
export class ConsoleDatabase implements OnApplicationShutdown {
  constructor(readonly dataSource: DataSource) {}

  /** Rejects when the server cannot be reached. */
  static async open(databaseUrl: string): Promise<ConsoleDatabase> {
    const { schema } = MIGRATIONS;
    const options = { url: databaseUrl, schema, applicationName: 'tollgate-console', poolSize: POOL_SIZE };
    return new ConsoleDatabase(await openServiceDataSource(options));
  }

  /** For better-auth, which runs SQL of its own. */
  get pool(): Pool {
    return poolOf(this.dataSource);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
  }
}
