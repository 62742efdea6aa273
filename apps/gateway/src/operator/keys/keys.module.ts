import { Module } from '@nestjs/common';
import { OperatorKeysController } from './keys.controller';
import { OperatorTokensController } from './tokens.controller';

/** The inference keys and the management tokens of a tenant. */
@Module({ controllers: [OperatorKeysController, OperatorTokensController] })
export class KeysModule {}
