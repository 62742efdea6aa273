import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { Keys } from './keys/keys';
import { Tenants } from './tenants/tenants';
import { Tokens } from './tokens/tokens';

/** Every subject that auth answers. */
@Injectable()
export class AuthHandlers implements OnModuleInit {
  constructor(
    private readonly messages: Messages,
    private readonly tenants: Tenants,
    private readonly keys: Keys,
    private readonly tokens: Tokens,
  ) {}

  onModuleInit(): void {
    const { messages, tenants, keys, tokens } = this;
    messages.handle('auth.tenants.create', (request) => tenants.create(request));
    messages.handle('auth.tenants.list', (request) => tenants.list(request));
    messages.handle('auth.tenants.get', (request) => tenants.get(request));
    messages.handle('auth.tenants.setStatus', (request) => tenants.setStatus(request));
    messages.handle('auth.keys.create', (request) => keys.create(request));
    messages.handle('auth.keys.list', (request) => keys.list(request));
    messages.handle('auth.keys.get', (request) => keys.get(request));
    messages.handle('auth.keys.revoke', (request) => keys.revoke(request));
    messages.handle('auth.tokens.create', (request) => tokens.create(request));
    messages.handle('auth.tokens.list', (request) => tokens.list(request));
    messages.handle('auth.tokens.revoke', (request) => tokens.revoke(request));
    messages.handle('auth.tokens.used', (request) => tokens.used(request));
  }
}
