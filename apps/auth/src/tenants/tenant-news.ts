import { Injectable } from '@nestjs/common';
import { Outbox, ServiceClient } from '@tollgate/messaging/nest';
import { UnavailableError, type TenantUpdate } from '@tollgate/contracts';

/** Less than the caller of the change waits. */
const TELL_DEADLINE_MS = 2_000;

/** Tells billing about committed changes of tenants. */
@Injectable()
export class TenantNews {
  constructor(
    private readonly outbox: Outbox,
    private readonly services: ServiceClient,
  ) {}

  /**
   * Called after the commit. The outbox delivers the change in any case. Billing is also asked to act on it at once, so
   * it is in force when this returns. UnavailableError when that is not certain: the change stays committed, the outbox
   * brings it into force, and a repeat succeeds once it is.
   */
  async tell(update: TenantUpdate): Promise<void> {
    this.outbox.wake();
    try {
      await this.services.request('billing.tenants.tell', update, { deadlineMs: TELL_DEADLINE_MS });
    } catch (error) {
      throw new UnavailableError(
        `the status of ${update.tenantId} is committed, and billing will learn of it by topic: ` +
          `${(error as Error).message}`,
      );
    }
  }
}
