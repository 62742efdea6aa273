import { Module } from '@nestjs/common';
import { Authenticator } from './authenticate';

@Module({ providers: [Authenticator], exports: [Authenticator] })
export class AuthenticateModule {}
