import { Module } from '@nestjs/common';
import { ApiAddressesModule } from '../api-addresses.module';
import { KeysController } from './keys.controller';
import { PlaygroundController } from './playground.controller';
import { Playgrounds } from './playgrounds';
import { TokensController } from './tokens.controller';

/** The keys and tokens of a tenant, and the page that tries a model with one. */
@Module({
  imports: [ApiAddressesModule],
  controllers: [KeysController, TokensController, PlaygroundController],
  providers: [Playgrounds],
})
export class CredentialsModule {}
