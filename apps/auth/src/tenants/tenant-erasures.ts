import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { UnavailableError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { AuthDatabase } from '../database';

const LOOK_MS = 5_000;
/** The pause between two tries. It is longer than any transaction that was in progress at the erasure. */
const PAUSE = `interval '1 minute'`;
/** Less than the caller of the erasure waits. */
const FIRST_DEADLINE_MS = 2_000;
/** A tenant with many changes has many rows. */
const DEADLINE_MS = 10_000;

/**
 * Completes the erasures of tenants. The transaction that erases a tenant in auth makes it due (erase_tenant). Billing
 * is asked at once, and both again a minute later, when all changes have ended that were under way. Only then is it no
 * longer due, so neither a crash nor an unavailable billing leaves an erasure incomplete.
 */
@Injectable()
export class TenantErasures implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: (ending) => this.completeDue(ending),
    failed: (error) =>
      logger('auth').warn({ reason: String(error) }, 'erasing tenants from the audit logs is not complete; retrying'),
    firstMs: LOOK_MS,
    everyMs: LOOK_MS,
    keepsProcess: true,
  });

  constructor(
    private readonly database: AuthDatabase,
    private readonly services: ServiceClient,
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  /** Called after the commit. UnavailableError: billing may not have erased it yet, and will be asked again. */
  async tellBilling(tenantId: string): Promise<void> {
    try {
      await this.services.request('billing.tenants.erase', { tenantId }, { deadlineMs: FIRST_DEADLINE_MS });
    } catch (error) {
      throw new UnavailableError(
        `the erasure of ${tenantId} is committed, and billing will be asked again: ${(error as Error).message}`,
      );
    }
  }

  /** Takes each tenant once a minute. If billing is unavailable, the others wait for the next look. */
  private async completeDue(ending: AbortSignal): Promise<void> {
    while (!ending.aborted) {
      const tenantId = await this.take();
      if (tenantId === undefined) break;
      await query(this.database.dataSource, 'SELECT erase_tenant($1)', [tenantId]);
      await this.services.request('billing.tenants.erase', { tenantId }, { deadlineMs: DEADLINE_MS });
      await query(this.database.dataSource, 'UPDATE tenant SET erasure_due_at = NULL WHERE id = $1', [tenantId]);
    }
  }

  /** If several processes ask, one gets the tenant. */
  private async take(): Promise<string | undefined> {
    const [tenant] = await query<{ id: string }>(
      this.database.dataSource,
      `UPDATE tenant SET erasure_due_at = now() + ${PAUSE} WHERE id = (
         SELECT id FROM tenant WHERE erasure_due_at <= now() ORDER BY erasure_due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING id`,
    );
    return tenant?.id;
  }
}
