import { isId, isInstant, type CredentialKind } from '@tollgate/contracts';
import { changedRows, transaction } from '@tollgate/postgres';
import type { AuthDataSource } from '../database';
import { ID_PREFIX } from './credential-book';

const MAX_USES_PER_UPDATE = 1_000;

/**
 * Rows are locked in sorted order, so two batches wait for each other instead of deadlocking. When a gateway's clock
 * runs ahead, the current time counts.
 */
const RECORD_USES = `
  WITH used AS (
    SELECT id, LEAST(max(at), now()) AS at FROM jsonb_to_recordset($1::jsonb) AS u (id text, at timestamptz) GROUP BY id
  ), locked AS (
    SELECT credential.id, used.at FROM credential JOIN used USING (id)
     WHERE kind = $2 ORDER BY credential.id FOR NO KEY UPDATE OF credential
  )
  UPDATE credential SET last_used_at = GREATEST(last_used_at, locked.at) FROM locked WHERE credential.id = locked.id`;

/**
 * Advances `last_used_at`, never back. Returns how many of the ids are credentials of this kind. A malformed use keeps
 * no other from being recorded.
 */
export async function recordUses(
  dataSource: AuthDataSource,
  kind: CredentialKind,
  uses: readonly { id: string; at: string }[],
): Promise<number> {
  const valid = uses.filter((use) => isUse(kind, use));
  let recorded = 0;
  for (let from = 0; from < valid.length; from += MAX_USES_PER_UPDATE) {
    const batch = JSON.stringify(valid.slice(from, from + MAX_USES_PER_UPDATE));
    recorded += await transaction(dataSource, (tx) => changedRows(tx, RECORD_USES, [batch, kind]));
  }
  return recorded;
}

function isUse(kind: CredentialKind, value: unknown): boolean {
  const { id, at } = (value ?? {}) as Record<string, unknown>;
  return isId(ID_PREFIX[kind], id) && isInstant(at);
}
