import { join } from 'node:path';
import { openServiceDataSource, ServiceDataSource } from '@tollgate/postgres';
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

/** A separate class, so that each service in one process injects its own data source. */
export class AuthDataSource extends ServiceDataSource {}

export function openAuthDatabase(url: string): Promise<AuthDataSource> {
  const { schema } = MIGRATIONS;
  return openServiceDataSource({ url, schema, poolSize: POOL_SIZE }, [Tenant, Credential, OperatorToken]);
}
