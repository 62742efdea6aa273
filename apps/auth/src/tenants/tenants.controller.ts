import { Controller } from '@nestjs/common';
import type { Page, PageQuery, RequestOf, TenantRow } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { Tenants } from './tenants';

@Controller()
export class TenantsController {
  constructor(private readonly tenants: Tenants) {}

  @MessagePattern('auth.tenants.create')
  create(request: RequestOf<'auth.tenants.create'>): Promise<TenantRow> {
    return this.tenants.create(request);
  }

  @MessagePattern('auth.tenants.list')
  list(query: PageQuery): Promise<Page<TenantRow>> {
    return this.tenants.list(query);
  }

  @MessagePattern('auth.tenants.get')
  get(request: RequestOf<'auth.tenants.get'>): Promise<TenantRow> {
    return this.tenants.get(request);
  }

  @MessagePattern('auth.tenants.setStatus')
  setStatus(request: RequestOf<'auth.tenants.setStatus'>): Promise<TenantRow> {
    return this.tenants.setStatus(request);
  }
}
