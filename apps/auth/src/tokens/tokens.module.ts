import { Module } from '@nestjs/common';
import { CredentialsModule } from '../credentials/credentials.module';
import { Tokens } from './tokens';
import { TokensController } from './tokens.controller';

@Module({ imports: [CredentialsModule], controllers: [TokensController], providers: [Tokens] })
export class TokensModule {}
