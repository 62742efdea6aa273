import { Module, type DynamicModule } from '@nestjs/common';
import { AuditModule } from './audit/audit.module';
import { BackendsModule } from './backends/backends.module';
import { AuthDataSource, openAuthDatabase } from './database';
import { KeysModule } from './keys/keys.module';
import { OperatorsModule } from './operators/operators.module';
import { TenantsModule } from './tenants/tenants.module';
import { TokensModule } from './tokens/tokens.module';

/** The database that all modules of auth share. */
@Module({})
class AuthGlobals {}

/** Needs MessagesModule, CredentialStore and ConfigSource from global modules, and the migrated schema. */
@Module({ imports: [TenantsModule, KeysModule, TokensModule, OperatorsModule, BackendsModule, AuditModule] })
export class AuthModule {
  static register({ databaseUrl }: { databaseUrl: string }): DynamicModule {
    const providers = [{ provide: AuthDataSource, useFactory: () => openAuthDatabase(databaseUrl) }];
    const exports = [AuthDataSource];
    return { module: AuthModule, imports: [{ module: AuthGlobals, global: true, providers, exports }] };
  }
}
