import { UnavailableError, type Author } from '@tollgate/contracts';
import { query, recordChange, transaction } from '@tollgate/postgres';
import type { AuthDataSource } from '../database';

/** Less than 0.1 s. A revocation waits for the rows of its key, and one statement for all rows may meet its timeout. */
const MAX_ROWS_PER_BATCH = 500;
/** Less than the console waits for an answer (erasures.ts). */
const MAX_TRY_MS = 8_000;

/**
 * Erases a person from the audit log and as the owner of keys, each batch in its own transaction. UnavailableError
 * when that takes longer than a try may: what is erased stays erased, and the next try goes on from there.
 *
 * The row of a person who erases their own account has no name either. Only the first of repeats adds the row.
 */
export async function erasePerson(
  dataSource: AuthDataSource,
  person: { by?: Author; userId: string; email: string },
  { batchRows = MAX_ROWS_PER_BATCH, tryMs = MAX_TRY_MS } = {},
): Promise<void> {
  const { by, userId } = person;
  const endsMs = performance.now() + tryMs;
  await transaction(dataSource, async (tx) => {
    // The console may ask again while the first request is still handled.
    await query(tx, `SELECT pg_advisory_xact_lock(hashtextextended('tollgate-auth-erasure ' || $1, 0))`, [userId]);
    const logged = `SELECT 1 FROM audit_log WHERE target = $1 AND action = 'account.erase'`;
    if ((await query(tx, logged, [userId])).length === 0)
      await recordChange(tx, by, { action: 'account.erase', target: userId });
  });
  const parameters = [userId, person.email.toLowerCase(), batchRows];
  for (const erase of ['erase_changes_of_person', 'erase_owner'])
    for (let more = true; more;) {
      const [batch] = await transaction(dataSource, (tx) =>
        query<{ more: boolean }>(tx, `SELECT ${erase}($1, $2, $3) AS more`, parameters),
      );
      more = batch!.more;
      if (more && performance.now() >= endsMs)
        throw new UnavailableError(`rows still name the erased person ${userId}; the next try goes on`);
    }
}
