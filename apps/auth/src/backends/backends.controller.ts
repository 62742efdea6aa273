import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { DrainedBackends } from './drained-backends';

@Controller()
export class BackendsController {
  constructor(private readonly backends: DrainedBackends) {}

  @MessagePattern('auth.backends.drained')
  list(): Promise<ReplyOf<'auth.backends.drained'>> {
    return this.backends.list();
  }

  @MessagePattern('auth.backends.drain')
  drain(request: RequestOf<'auth.backends.drain'>): Promise<ReplyOf<'auth.backends.drain'>> {
    return this.backends.drain(request);
  }

  @MessagePattern('auth.backends.enable')
  enable(request: RequestOf<'auth.backends.enable'>): Promise<ReplyOf<'auth.backends.enable'>> {
    return this.backends.enable(request);
  }
}
