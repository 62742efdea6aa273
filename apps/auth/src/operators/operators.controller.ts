import { Controller } from '@nestjs/common';
import type { OperatorTokenRow, Page, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { Operators } from './operators';

@Controller()
export class OperatorsController {
  constructor(private readonly operators: Operators) {}

  @MessagePattern('auth.operators.create')
  create(request: RequestOf<'auth.operators.create'>): Promise<OperatorTokenRow> {
    return this.operators.create(request);
  }

  @MessagePattern('auth.operators.list')
  list(request: RequestOf<'auth.operators.list'>): Promise<Page<OperatorTokenRow>> {
    return this.operators.list(request);
  }

  @MessagePattern('auth.operators.revoke')
  revoke(request: RequestOf<'auth.operators.revoke'>): Promise<{ revokedAt: string }> {
    return this.operators.revoke(request);
  }

  @MessagePattern('auth.operators.use')
  use(request: RequestOf<'auth.operators.use'>): Promise<ReplyOf<'auth.operators.use'>> {
    return this.operators.use(request);
  }
}
