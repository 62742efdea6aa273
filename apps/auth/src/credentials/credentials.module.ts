import { Module } from '@nestjs/common';
import { ProjectModule } from '../project/project.module';
import { CredentialBook } from './credential-book';

/** What keys and tokens have in common. */
@Module({ imports: [ProjectModule], providers: [CredentialBook], exports: [CredentialBook] })
export class CredentialsModule {}
