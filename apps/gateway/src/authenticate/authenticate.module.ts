import { Module } from '@nestjs/common';
import { CredentialStore } from '@tollgate/credentials';
import { ConfigSource } from '@tollgate/runtime';
import { Authenticator } from './authenticate';

const authenticator = {
  provide: Authenticator,
  inject: [CredentialStore, ConfigSource],
  useFactory: (credentials: CredentialStore, config: ConfigSource) => new Authenticator(credentials, config),
};

@Module({ providers: [authenticator], exports: [Authenticator] })
export class AuthenticateModule {}
