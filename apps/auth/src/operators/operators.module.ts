import { Module } from '@nestjs/common';
import { Operators } from './operators';
import { OperatorsController } from './operators.controller';

@Module({ controllers: [OperatorsController], providers: [Operators] })
export class OperatorsModule {}
