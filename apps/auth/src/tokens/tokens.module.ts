import { Module } from '@nestjs/common';
import { CredentialsModule } from '../credentials/credentials.module';
import { TenantsModule } from '../tenants/tenants.module';
import { Tokens } from './tokens';
import { TokensController } from './tokens.controller';

@Module({ imports: [TenantsModule, CredentialsModule], controllers: [TokensController], providers: [Tokens] })
export class TokensModule {}
