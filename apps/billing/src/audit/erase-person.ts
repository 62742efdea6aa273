import { UnavailableError } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { BillingDataSource } from '../database';

/** Less than 0.1 s. One statement for all rows of a busy person would meet its timeout. */
export const MAX_ROWS_PER_BATCH = 1_000;
/** Less than the console waits for an answer (erasures.ts). */
const MAX_TRY_MS = 8_000;

/**
 * Removes a person from the audit log, each batch in its own transaction. UnavailableError when that takes longer
 * than a try may: what is erased stays erased, and the next try goes on from there.
 */
export async function erasePerson(
  dataSource: BillingDataSource,
  userId: string,
  { batchRows = MAX_ROWS_PER_BATCH, tryMs = MAX_TRY_MS } = {},
): Promise<void> {
  const endsMs = performance.now() + tryMs;
  for (let more = true; more;) {
    const [batch] = await transaction(dataSource, (tx) =>
      query<{ more: boolean }>(tx, 'SELECT erase_changes_of_person($1, $2) AS more', [userId, batchRows]),
    );
    more = batch!.more;
    if (more && performance.now() >= endsMs)
      throw new UnavailableError(`the audit log still names the erased person ${userId}; the next try goes on`);
  }
}
