import type { JournalHead } from '@tollgate/contracts';
import type { Query } from '@tollgate/postgres';
import { createHash } from 'node:crypto';

/**
 * Format 1 of the hashed text, like `entry_text` in functions/journal_chain.sql. It is repeated here because an
 * attacker who can change the journal can change that function, too. `e` is the entry, `$before` the hash before it.
 */
const ENTRY_TEXT = (before: string) => `
  to_jsonb(ARRAY['tollgate-journal-1', coalesce(encode(${before}, 'hex'), ''), e.id, e.tenant_id, e.sequence::text,
    e.type, e.amount_cents::text, e.source, e.ref, encode(e.input_hash, 'hex'), e.period,
      e.balance_after_cents::text, to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.reason]
    || (SELECT array_agg(account || ':' || amount_cents ORDER BY account COLLATE "C")
      FROM posting
      WHERE entry_id = e.id))::text`;

/**
 * Names the first entry of a tenant whose hash does not match its contents and the hash before it. Later entries are
 * not vouched for.
 */
export const CHAIN_CHECK = {
  check: 'every entry has the hash of its contents and of the entries before it',
  sql: `SELECT DISTINCT ON (tenant_id) tenant_id AS "tenantId", array_remove(ARRAY[id], NULL) AS ids,
      format('entry %s: %s', sequence, coalesce(encode(hash, 'hex'), 'a hash')) AS expected,
      format(
        'entry %s: %s',
        sequence,
        CASE WHEN id IS NULL THEN 'no entry' WHEN hash IS NULL THEN 'none' ELSE encode(hashed, 'hex') END
      ) AS actual
    FROM (SELECT coalesce(e.tenant_id, c.tenant_id) AS tenant_id, coalesce(e.sequence, c.sequence) AS sequence, e.id,
      c.hash,
        CASE WHEN c.format = 1 THEN sha256(convert_to(${ENTRY_TEXT('c.before')}, 'UTF8')) END AS hashed
      FROM (SELECT * FROM journal_entry WHERE tenant_id = ANY($1)) e
      FULL JOIN (
        SELECT tenant_id, sequence, format, hash,
          lag(hash) OVER (PARTITION BY tenant_id ORDER BY sequence) AS before
        FROM journal_chain
        WHERE tenant_id = ANY($1)
      ) c
        ON c.tenant_id = e.tenant_id AND c.sequence = e.sequence) entries
    WHERE id IS NULL OR hash IS NULL OR hash IS DISTINCT FROM hashed
    ORDER BY tenant_id, sequence`,
};

/** The heads of these tenants, in ascending order. A tenant without entries has none. */
export async function headsOf(query: Query, tenantIds: readonly string[]): Promise<JournalHead[]> {
  const rows = await query<{ tenant_id: string; sequence: string; hash: Buffer }>(
    `SELECT t.tenant_id, h.sequence, h.hash FROM unnest($1::text[]) AS t (tenant_id),
       LATERAL (SELECT sequence, hash FROM journal_chain WHERE tenant_id = t.tenant_id ORDER BY sequence DESC LIMIT 1) h
     ORDER BY t.tenant_id COLLATE "C"`,
    [tenantIds],
  );
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    sequence: Number(row.sequence),
    hash: row.hash.toString('hex'),
  }));
}

/** A head as a line of a file: `<tenant> <sequence> <hash>`. */
export const headLine = ({ tenantId, sequence, hash }: JournalHead): string => `${tenantId} ${sequence} ${hash}`;

/** All heads as one hash: SHA-256 of their lines, in ascending order of the tenants. */
export class HeadsDigest {
  entries = 0;
  private readonly hash = createHash('sha256');

  add(heads: readonly JournalHead[]): void {
    for (const head of heads) {
      this.entries += head.sequence;
      this.hash.update(`${headLine(head)}\n`);
    }
  }

  /** The hash of the lines so far. */
  get hex(): string {
    return this.hash.copy().digest('hex');
  }
}
