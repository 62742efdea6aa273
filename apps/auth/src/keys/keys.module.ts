import { Module } from '@nestjs/common';
import { CredentialsModule } from '../credentials/credentials.module';
import { ProjectModule } from '../project/project.module';
import { KeyList } from './key-list';
import { KeyRotation } from './key-rotation';
import { Keys } from './keys';
import { KeysController } from './keys.controller';
import { ProfilesInUse } from './profiles-in-use';

@Module({
  imports: [CredentialsModule, ProjectModule],
  controllers: [KeysController],
  providers: [Keys, KeyRotation, KeyList, ProfilesInUse],
})
export class KeysModule {}
