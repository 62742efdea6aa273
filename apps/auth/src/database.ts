import { join } from 'node:path';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { openServiceDataSource } from '@tollgate/postgres';
import type { DataSource, Repository } from 'typeorm';
import { Credential } from './credentials/credential.entity';
import { OperatorToken } from './operators/operator-token.entity';
import { Tenant } from './tenants/tenant.entity';

export const MIGRATIONS = {
  schema: 'auth',
  directory: join(__dirname, 'migrations'),
  functions: join(__dirname, 'functions'),
};

/** For requests, and one connection for the projection loop. */
export const POOL_SIZE = 5;

/** The connections to the schema `auth`. They close after all modules of auth, because their module is global. */
@Injectable()
export class AuthDatabase implements OnApplicationShutdown {
  readonly tenants: Repository<Tenant>;
  readonly credentials: Repository<Credential>;
  readonly operators: Repository<OperatorToken>;

  constructor(readonly dataSource: DataSource) {
    this.tenants = dataSource.getRepository(Tenant);
    this.credentials = dataSource.getRepository(Credential);
    this.operators = dataSource.getRepository(OperatorToken);
  }

  /** Rejects when the server cannot be reached. */
  static async open(databaseUrl: string): Promise<AuthDatabase> {
    const options = {
      url: databaseUrl,
      schema: MIGRATIONS.schema,
      applicationName: 'tollgate-auth',
      poolSize: POOL_SIZE,
    };
    return new AuthDatabase(await openServiceDataSource(options, [Tenant, Credential, OperatorToken]));
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
  }
}
