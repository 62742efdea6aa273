import { Module } from '@nestjs/common';
import { SignIn } from './sign-in';

/** Who a person is. */
@Module({ providers: [SignIn], exports: [SignIn] })
export class SignInModule {}
