import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { Overviews } from './overviews';
import { UsageController } from './usage.controller';

/** What a tenant used, and what it can use. */
@Module({ imports: [AccessModule], controllers: [UsageController], providers: [Overviews], exports: [Overviews] })
export class UsageModule {}
