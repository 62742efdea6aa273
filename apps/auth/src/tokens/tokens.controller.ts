import { Controller } from '@nestjs/common';
import type { Page, RequestOf, TokenRow } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { Tokens } from './tokens';

@Controller()
export class TokensController {
  constructor(private readonly tokens: Tokens) {}

  @MessagePattern('auth.tokens.create')
  create(request: RequestOf<'auth.tokens.create'>): Promise<TokenRow> {
    return this.tokens.create(request);
  }

  @MessagePattern('auth.tokens.list')
  list(request: RequestOf<'auth.tokens.list'>): Promise<Page<TokenRow>> {
    return this.tokens.list(request);
  }

  @MessagePattern('auth.tokens.revoke')
  revoke(request: RequestOf<'auth.tokens.revoke'>): Promise<{ revokedAt: string }> {
    return this.tokens.revoke(request);
  }

  @MessagePattern('auth.tokens.used')
  used(request: RequestOf<'auth.tokens.used'>): Promise<{ recorded: number }> {
    return this.tokens.used(request);
  }
}
