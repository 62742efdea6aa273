import { Module } from '@nestjs/common';
import { CredentialsModule } from '../credentials/credentials.module';
import { TenantsModule } from '../tenants/tenants.module';
import { Keys } from './keys';
import { KeysController } from './keys.controller';
import { ProfilesInUse } from './profiles-in-use';

@Module({
  imports: [TenantsModule, CredentialsModule],
  controllers: [KeysController],
  providers: [Keys, ProfilesInUse],
})
export class KeysModule {}
