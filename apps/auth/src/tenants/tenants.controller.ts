import { Controller } from '@nestjs/common';
import type { Page, ReplyOf, RequestOf, TenantRow } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { TenantEnd } from './tenant-end';
import { Tenants } from './tenants';

@Controller()
export class TenantsController {
  constructor(
    private readonly tenants: Tenants,
    private readonly end: TenantEnd,
  ) {}

  @MessagePattern('auth.tenants.create')
  create(request: RequestOf<'auth.tenants.create'>): Promise<TenantRow> {
    return this.tenants.create(request);
  }

  @MessagePattern('auth.tenants.list')
  list(query: RequestOf<'auth.tenants.list'>): Promise<Page<TenantRow>> {
    return this.tenants.list(query);
  }

  @MessagePattern('auth.tenants.get')
  get(request: RequestOf<'auth.tenants.get'>): Promise<TenantRow> {
    return this.tenants.get(request);
  }

  @MessagePattern('auth.tenants.names')
  names(request: RequestOf<'auth.tenants.names'>): Promise<ReplyOf<'auth.tenants.names'>> {
    return this.tenants.names(request);
  }

  @MessagePattern('auth.tenants.update')
  update(request: RequestOf<'auth.tenants.update'>): Promise<TenantRow> {
    return this.tenants.update(request);
  }

  @MessagePattern('auth.tenants.close')
  close(request: RequestOf<'auth.tenants.close'>): Promise<TenantRow> {
    return this.end.close(request);
  }

  @MessagePattern('auth.tenants.erase')
  erase(request: RequestOf<'auth.tenants.erase'>): Promise<TenantRow> {
    return this.end.erase(request);
  }

  @MessagePattern('auth.tenants.setStatus')
  setStatus(request: RequestOf<'auth.tenants.setStatus'>): Promise<TenantRow> {
    return this.tenants.setStatus(request);
  }
}
