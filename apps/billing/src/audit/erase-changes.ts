import { UnavailableError } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { BillingDataSource } from '../database';

/** About 0.2 s. One statement for all rows of a large tenant would meet its timeout, and never end. */
const MAX_ROWS_PER_BATCH = 1_000;
/** Less than auth waits for an answer (tenant-erasures.ts). */
const MAX_TRY_MS = 8_000;

/**
 * Removes a tenant's people from the audit log, each batch in its own transaction. UnavailableError when that
 * takes longer than a try may: what is erased stays erased, and the next try goes on from there.
 */
export async function eraseChanges(
  dataSource: BillingDataSource,
  tenantId: string,
  { batchRows = MAX_ROWS_PER_BATCH, tryMs = MAX_TRY_MS } = {},
): Promise<void> {
  const endsMs = performance.now() + tryMs;
  for (let after: string | null = ''; after !== null;) {
    if (after !== '' && performance.now() >= endsMs)
      throw new UnavailableError(`the audit log still names people of ${tenantId}; the next try goes on`);
    const parameters: unknown[] = [tenantId, after, batchRows];
    const [batch] = await transaction(dataSource, (tx) =>
      query<{ last: string | null }>(tx, 'SELECT erase_changes($1, $2, $3) AS last', parameters),
    );
    after = batch!.last;
  }
}
