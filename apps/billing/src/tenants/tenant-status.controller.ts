import { Controller } from '@nestjs/common';
import { RequestError, type ReplyOf, type TenantUpdate } from '@tollgate/contracts';
import { EventPattern, MessagePattern } from '@tollgate/messaging/nest';
import { AfterCommit } from '../post/after-commit';
import { PoisonWatch } from '../repair/poison-watch';
import { TenantStatus, validateTenantUpdate } from './tenant-status';

@Controller()
export class TenantStatusController {
  constructor(
    private readonly status: TenantStatus,
    private readonly after: AfterCommit,
    private readonly watch: PoisonWatch,
  ) {}

  @EventPattern('tenant-news', 'billing', { validate: validateTenantUpdate })
  async apply(batch: readonly TenantUpdate[]): Promise<void> {
    await this.status.apply(batch);
    this.after.committed();
  }

  @MessagePattern('billing.tenants.tell')
  async tell(update: TenantUpdate): Promise<ReplyOf<'billing.tenants.tell'>> {
    const reason = validateTenantUpdate(update);
    if (reason !== null) throw new RequestError('invalid_parameter', reason);
    try {
      await this.status.enforce(update);
    } finally {
      this.after.committed();
    }
    // A store that a forged version put ahead of the books has ignored the status.
    await this.watch.heal(update.tenantId);
    return { told: true };
  }
}
