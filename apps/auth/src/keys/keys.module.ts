import { Module } from '@nestjs/common';
import { CredentialsModule } from '../credentials/credentials.module';
import { Keys } from './keys';
import { KeysController } from './keys.controller';
import { ProfilesInUse } from './profiles-in-use';

@Module({
  imports: [CredentialsModule],
  controllers: [KeysController],
  providers: [Keys, ProfilesInUse],
})
export class KeysModule {}
