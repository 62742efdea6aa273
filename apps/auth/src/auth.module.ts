import { Module, type DynamicModule } from '@nestjs/common';
import { AuditModule } from './audit/audit.module';
import { BackendsModule } from './backends/backends.module';
import { AuthDatabase } from './database';
import { KeysModule } from './keys/keys.module';
import { OperatorsModule } from './operators/operators.module';
import { TenantsModule } from './tenants/tenants.module';
import { TokensModule } from './tokens/tokens.module';

/** The database that all modules of auth share. */
@Module({})
class AuthDatabaseModule {}

/** Needs MessagesModule, CredentialStore and ConfigSource from global modules, and the migrated schema. */
@Module({ imports: [TenantsModule, KeysModule, TokensModule, OperatorsModule, BackendsModule, AuditModule] })
export class AuthModule {
  static register({ databaseUrl }: { databaseUrl: string }): DynamicModule {
    const providers = [{ provide: AuthDatabase, useFactory: () => AuthDatabase.open(databaseUrl) }];
    const database = { module: AuthDatabaseModule, global: true, providers, exports: [AuthDatabase] };
    return { module: AuthModule, imports: [database] };
  }
}
