import { Module } from '@nestjs/common';
import { KeyActivity } from './key-activity';

@Module({ providers: [KeyActivity], exports: [KeyActivity] })
export class ActivityModule {}
