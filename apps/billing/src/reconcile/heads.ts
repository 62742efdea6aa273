import {
  MAX_COMPARED_HEADS,
  pageRows,
  RequestError,
  toPage,
  type Difference,
  type JournalHead,
  type Page,
  type PageQuery,
} from '@tollgate/contracts';
import { Injectable } from '@nestjs/common';
import { query } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import { BillingDataSource } from '../database';
import { headLine } from './chain';

const HEADS_PER_LINE = 100;
/** At its start a process logs the heads that moved within this time. */
const FIRST_LOGGED_MS = 24 * 60 * 60 * 1_000;
/**
 * An entry gets its time some moments before its commit. So heads that moved this long before the last look are logged
 * again.
 */
const OVERLAP_MS = 60_000;
const HASH = /^[0-9a-f]{64}$/;
export const KEPT_CHECK = 'the journal is as it was when its heads were kept';

/**
 * The newest entry of each tenant's journal, in ascending order of the tenants, after the tenant `after`. With
 * `movedMs`, only heads that moved within that time. RequestError invalid_parameter.
 */
export async function journalHeads(
  dataSource: DataSource,
  { limit: asked, after = '' }: PageQuery,
  movedMs: number | null = null,
): Promise<Page<JournalHead>> {
  const limit = pageRows(asked);
  const rows = await query<{ tenant_id: string; sequence: string; hash: Buffer }>(
    dataSource,
    `SELECT b.tenant_id, c.sequence, c.hash
     FROM tenant_books b
     JOIN journal_chain c ON c.tenant_id = b.tenant_id AND c.sequence = b.last_sequence
     WHERE b.tenant_id > $1 AND ($3::float8 IS NULL OR EXISTS (
       SELECT FROM journal_entry e
       WHERE e.tenant_id = b.tenant_id AND e.sequence = b.last_sequence
         AND e.created_at > now() - $3 * interval '1 ms'))
     ORDER BY b.tenant_id LIMIT $2`,
    [after, limit + 1, movedMs],
  );
  const heads = rows.map((row) => ({
    tenantId: row.tenant_id,
    sequence: Number(row.sequence),
    hash: row.hash.toString('hex'),
  }));
  return toPage(heads, limit, ({ tenantId }) => tenantId);
}

const areHeads = (given: unknown): given is JournalHead[] =>
  Array.isArray(given) && given.length <= MAX_COMPARED_HEADS && given.every(isHead);

/**
 * Kept heads that are no longer in the journal: something before them was changed, whatever the hashes say now.
 * RequestError invalid_parameter.
 */
export async function compareHeads(
  dataSource: DataSource,
  { heads }: { heads: readonly JournalHead[] },
): Promise<{ differences: Difference[] }> {
  if (!areHeads(heads))
    throw new RequestError(
      'invalid_parameter',
      `heads must be a list of at most ${MAX_COMPARED_HEADS}, each as \`tollgate journal heads\` printed it.`,
    );
  const rows = await query<{ hash: Buffer | null; id: string | null }>(
    dataSource,
    `SELECT c.hash, e.id FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS kept (tenant_id, sequence, place)
       LEFT JOIN journal_chain c ON c.tenant_id = kept.tenant_id AND c.sequence = kept.sequence
       LEFT JOIN journal_entry e ON e.tenant_id = kept.tenant_id AND e.sequence = kept.sequence
     ORDER BY place`,
    [heads.map((head) => head.tenantId), heads.map((head) => head.sequence)],
  );
  const differences = heads.flatMap(({ tenantId, sequence, hash }, place) => {
    const now = rows[place]!;
    const found = now.hash?.toString('hex') ?? 'none';
    const expected = `entry ${sequence}: ${hash}`;
    if (found === hash) return [];
    return [
      { check: KEPT_CHECK, tenantId, expected, actual: `entry ${sequence}: ${found}`, ids: now.id ? [now.id] : [] },
    ];
  });
  return { differences };
}

/**
 * Logs heads that moved. The log is kept elsewhere, out of reach of an attacker who rewrites the journal.
 */
@Injectable()
export class HeadsLogger {
  private lookedAtMs: number | undefined;

  constructor(private readonly dataSource: BillingDataSource) {}

  /** @returns the number of heads */
  async log(): Promise<number> {
    const startedMs = performance.now();
    const movedMs = this.lookedAtMs === undefined ? FIRST_LOGGED_MS : startedMs - this.lookedAtMs + OVERLAP_MS;
    let logged = 0;
    for (let after: string | null = ''; after !== null;) {
      const page: Page<JournalHead> = await journalHeads(this.dataSource, { limit: HEADS_PER_LINE, after }, movedMs);
      if (page.data.length > 0) this.write(page.data.map(headLine));
      logged += page.data.length;
      after = page.nextCursor;
    }
    this.lookedAtMs = startedMs;
    return logged;
  }

  protected write(heads: string[]): void {
    logger('billing').info({ heads }, 'heads of the journal');
  }
}

function isHead(value: unknown): boolean {
  const { tenantId, sequence, hash } = (value ?? {}) as Record<string, unknown>;
  const isPlace = typeof tenantId === 'string' && Number.isSafeInteger(sequence) && Number(sequence) > 0;
  return isPlace && typeof hash === 'string' && HASH.test(hash);
}
