import { Controller } from '@nestjs/common';
import type { RequestOf, TenantRepair } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { TenantRepairs } from './tenant-repairs';

@Controller()
export class RepairController {
  constructor(private readonly repairs: TenantRepairs) {}

  @MessagePattern('billing.tenants.repair')
  repair(request: RequestOf<'billing.tenants.repair'>): Promise<TenantRepair> {
    return this.repairs.repair(request);
  }
}
