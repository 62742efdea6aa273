import { join } from 'node:path';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { openDataSource } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';

export const MIGRATIONS = { schema: 'metering', directory: join(__dirname, 'migrations') };

/** One consumer, the outbox relay, and usage queries beside them. */
const POOL_SIZE = 6;

/** The connections to the schema `metering`; closed as the last of the module. */
@Injectable()
export class MeteringDatabase implements OnApplicationShutdown {
  constructor(readonly dataSource: DataSource) {}

  static async open(databaseUrl: string): Promise<MeteringDatabase> {
    return new MeteringDatabase(
      await openDataSource({ url: databaseUrl, schema: MIGRATIONS.schema, applicationName: 'tollgate-metering', poolSize: POOL_SIZE }),
    );
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
  }
}
