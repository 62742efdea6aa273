import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { UnavailableError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query, transaction } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { AuthDataSource } from '../database';

const LOOK_MS = 5_000;
/** The pause between two tries. It is longer than any transaction that was in progress at the erasure. */
const PAUSE = `interval '1 minute'`;
/** For all logs together. Less than the caller of the erasure waits. */
const FIRST_TRY_MS = 2_000;
/** A tenant with many changes has many rows in billing, which gives up its try a little earlier (erase-changes.ts). */
const DEADLINE_MS = 10_000;
/** Less than 0.1 s. One statement for all rows of a large tenant would meet its timeout, and never end. */
export const MAX_ROWS_PER_ERASURE = 500;

/**
 * Completes the erasures of tenants. The transaction that erases a tenant in auth makes it due (begin_erasure). Its
 * rows in auth and in billing are erased at once, in batches, and both again a minute later, when all changes have
 * ended that were under way. Only then is it no longer due, so neither a crash nor an unavailable billing leaves an
 * erasure incomplete.
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
    private readonly dataSource: AuthDataSource,
    private readonly services: ServiceClient,
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  /**
   * The first try, called after the commit. UnavailableError: rows of auth or of billing may still have names, and
   * another try follows.
   */
  async eraseRows(tenantId: string): Promise<void> {
    const endsMs = performance.now() + FIRST_TRY_MS;
    const leftMs = () => Math.max(1, Math.round(endsMs - performance.now()));
    try {
      await this.eraseOwnRows(tenantId, AbortSignal.timeout(FIRST_TRY_MS));
      await this.services.request('billing.tenants.erase', { tenantId }, { deadlineMs: leftMs() });
    } catch (error) {
      throw new UnavailableError(
        `the erasure of ${tenantId} is committed, and its rows follow: ${(error as Error).message}`,
      );
    }
  }

  /** Takes each tenant once a minute. If billing is unavailable, the others wait for the next look. */
  private async completeDue(ending: AbortSignal): Promise<void> {
    while (!ending.aborted) {
      const tenantId = await this.take();
      if (tenantId === undefined) break;
      await this.eraseOwnRows(tenantId, ending);
      await this.services.request('billing.tenants.erase', { tenantId }, { deadlineMs: DEADLINE_MS });
      await query(this.dataSource, 'UPDATE tenant SET erasure_due_at = NULL WHERE id = $1', [tenantId]);
    }
  }

  /**
   * Each batch is a separate transaction, so a repeat finds fewer rows to change. Begins with the first row each
   * time: rows that name nobody are only read.
   */
  private async eraseOwnRows(tenantId: string, ending: AbortSignal): Promise<void> {
    for (const erase of ['erase_credentials', 'erase_changes'])
      for (let after: string | null = ''; after !== null;) {
        ending.throwIfAborted();
        const parameters: unknown[] = [tenantId, after, MAX_ROWS_PER_ERASURE];
        const [batch] = await transaction(this.dataSource, (tx) =>
          query<{ last: string | null }>(tx, `SELECT ${erase}($1, $2, $3) AS last`, parameters),
        );
        after = batch!.last;
      }
  }

  /** If several processes ask, one gets the tenant. */
  private async take(): Promise<string | undefined> {
    const [tenant] = await query<{ id: string }>(
      this.dataSource,
      `UPDATE tenant SET erasure_due_at = now() + ${PAUSE} WHERE id = (
         SELECT id FROM tenant WHERE erasure_due_at <= now() ORDER BY erasure_due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING id`,
    );
    return tenant?.id;
  }
}
