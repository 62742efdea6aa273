import { Controller } from '@nestjs/common';
import type { KeyRow, Page, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { Keys } from './keys';

@Controller()
export class KeysController {
  constructor(private readonly keys: Keys) {}

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

  @MessagePattern('auth.keys.used')
  used(request: RequestOf<'auth.keys.used'>): Promise<{ recorded: number }> {
    return this.keys.used(request);
  }

  @MessagePattern('auth.keys.update')
  update(request: RequestOf<'auth.keys.update'>): Promise<KeyRow> {
    return this.keys.update(request);
  }

  @MessagePattern('auth.keys.revoke')
  revoke(request: RequestOf<'auth.keys.revoke'>): Promise<{ revokedAt: string }> {
    return this.keys.revoke(request);
  }
}
