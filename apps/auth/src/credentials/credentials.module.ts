import { Module } from '@nestjs/common';
import { ProjectModule } from '../project/project.module';
import { CredentialBook } from './credential-book';

/** The common part of keys and tokens. */
@Module({ imports: [ProjectModule], providers: [CredentialBook], exports: [CredentialBook] })
export class CredentialsModule {}
