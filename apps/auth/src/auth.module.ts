import { Module, type DynamicModule } from '@nestjs/common';
import { CredentialBook } from './credentials/credential-book';
import { AuthDatabase } from './database';
import { AuthHandlers } from './handlers';
import { Keys } from './keys/keys';
import { ProfilesInUse } from './keys/profiles-in-use';
import { ProjectionLoop } from './project/projection-loop';
import { Projector } from './project/projector';
import { TenantOutbox } from './tenants/tenant-outbox';
import { Tenants } from './tenants/tenants';
import { Tokens } from './tokens/tokens';

/** Needs Messages, CredentialStore and ConfigSource from a global module, and the migrated schema. */
@Module({})
export class AuthModule {
  static register({ databaseUrl }: { databaseUrl: string }): DynamicModule {
    const database = { provide: AuthDatabase, useFactory: () => AuthDatabase.open(databaseUrl) };
    return {
      module: AuthModule,
      providers: [
        database,
        Projector,
        ProjectionLoop,
        ProfilesInUse,
        CredentialBook,
        TenantOutbox,
        Tenants,
        Keys,
        Tokens,
        AuthHandlers,
      ],
    };
  }
}
