import { Controller } from '@nestjs/common';
import type { KeyRow, Page, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { KeyList } from './key-list';
import { KeyRotation } from './key-rotation';
import { Keys } from './keys';
import { ProfilesInUse } from './profiles-in-use';

@Controller()
export class KeysController {
  constructor(
    private readonly keys: Keys,
    private readonly rotation: KeyRotation,
    private readonly keyList: KeyList,
    private readonly profilesInUse: ProfilesInUse,
  ) {}

  @MessagePattern('auth.keys.create')
  create(request: RequestOf<'auth.keys.create'>): Promise<KeyRow> {
    return this.keys.create(request);
  }

  @MessagePattern('auth.keys.list')
  list(request: RequestOf<'auth.keys.list'>): Promise<Page<KeyRow>> {
    return this.keys.list(request);
  }

  @MessagePattern('auth.keys.get')
  get(request: RequestOf<'auth.keys.get'>): Promise<KeyRow> {
    return this.keys.get(request);
  }

  @MessagePattern('auth.keys.find')
  find(request: RequestOf<'auth.keys.find'>): Promise<ReplyOf<'auth.keys.find'>> {
    return this.keys.find(request);
  }

  @MessagePattern('auth.keys.used')
  used(request: RequestOf<'auth.keys.used'>): Promise<{ recorded: number }> {
    return this.keys.used(request);
  }

  @MessagePattern('auth.keys.names')
  names(request: RequestOf<'auth.keys.names'>): Promise<ReplyOf<'auth.keys.names'>> {
    return this.keys.names(request);
  }

  @MessagePattern('auth.keys.update')
  update(request: RequestOf<'auth.keys.update'>): Promise<KeyRow> {
    return this.keys.update(request);
  }

  @MessagePattern('auth.keys.rotate')
  rotate(request: RequestOf<'auth.keys.rotate'>): Promise<KeyRow> {
    return this.rotation.rotate(request);
  }

  @MessagePattern('auth.keys.apply')
  apply(request: RequestOf<'auth.keys.apply'>): Promise<ReplyOf<'auth.keys.apply'>> {
    return this.keyList.apply(request);
  }

  @MessagePattern('auth.config.check')
  async checkConfig(next: RequestOf<'auth.config.check'>): Promise<ReplyOf<'auth.config.check'>> {
    return { problems: await this.profilesInUse.missingIn(next) };
  }

  @MessagePattern('auth.keys.revoke')
  revoke(request: RequestOf<'auth.keys.revoke'>): Promise<{ revokedAt: string }> {
    return this.keys.revoke(request);
  }
}
