import { newId } from '@tollgate/contracts';
import { migrate } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIGRATIONS } from '../database';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { auditLedger } from './audit';
import { CHAIN_CHECK } from './chain';

const database = useTestDatabase();

/** Format 1 as described in functions/journal_chain.sql, computed without the database. */
async function expectedHashes(tenantId: string): Promise<string[]> {
  const entries = await database.query<Record<string, string | null>>(
    `SELECT id, tenant_id, sequence::text, type, amount_cents::text, source, ref,
       encode(input_hash, 'hex') AS input_hash, period, balance_after_cents::text,
       to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at, reason
     FROM billing.journal_entry
     WHERE tenant_id = $1
     ORDER BY sequence`,
    [tenantId],
  );
  const hashes: string[] = [];
  for (const entry of entries) {
    const postings = await database.query<{ account: string; cents: string }>(
      'SELECT account, amount_cents::text AS cents FROM billing.posting WHERE entry_id = $1',
      [entry['id']],
    );
    const parts = ['tollgate-journal-1', hashes.at(-1) ?? '', ...Object.values(entry)];
    parts.push(...postings.map(({ account, cents }) => `${account}:${cents}`).sort());
    const text = `[${parts.map((part) => JSON.stringify(part)).join(', ')}]`;
    hashes.push(createHash('sha256').update(text, 'utf8').digest('hex'));
  }
  return hashes;
}
const chain = async (tenantId: string) =>
  (
    await database.query<{ hash: string }>(
      `SELECT encode(hash, 'hex') AS hash FROM billing.journal_chain WHERE tenant_id = $1 ORDER BY sequence`,
      [tenantId],
    )
  ).map((row) => row.hash);

describe('the hash chain of the journal', () => {
  const billing = useBilling(database);

  /** Makes a top-up whose ref needs escapes, and debits of two months, one with an overrun, in one transaction. */
  async function used(): Promise<string> {
    const tenantId = await billing.tenant(1_000);
    await billing.topUps.add({ tenantId, amountCents: 7, source: 'manual', ref: '“ä”\\"\u{1F600}\u2028' });
    await billing.gatherer.gather([
      charge(tenantId, 2n * CENT, { endedAt: '2026-10-10T00:00:00Z', overrunNanos: String(3n * CENT) }),
      charge(tenantId, 5n * CENT, { endedAt: '2026-11-10T00:00:00Z' }),
    ]);
    await billing.poster.postDue();
    return tenantId;
  }

  it('hashes every column of an entry, its postings and the hash before it, as documented', async () => {
    const tenantId = await used();
    const hashes = await expectedHashes(tenantId);
    expect(hashes).toHaveLength(4);
    expect(await chain(tenantId)).toEqual(hashes);
    expect((await auditLedger(billing.dataSource, [tenantId])).differences).toEqual([]);
    const columns = await database.query<{ name: string }>(
      `SELECT attname AS name
       FROM pg_attribute
       WHERE attrelid = 'billing.journal_entry'::regclass AND attnum > 0 AND NOT attisdropped
       ORDER BY attnum`,
    );
    // A new column needs a new format.
    expect(columns.map((column) => column.name).join(' ')).toBe(
      'id tenant_id sequence type amount_cents source ref input_hash period balance_after_cents created_at reason',
    );
  });

  it('lets the service add and change no hash, and add no posting to a booked entry', async () => {
    const tenantId = await used();
    const [first] = await billing.entries(tenantId);
    const { dataSource } = billing;
    const sha = `sha256('x')`;
    for (const sql of [
      `INSERT INTO journal_chain VALUES ('${tenantId}', 5, 1, ${sha})`,
      `UPDATE journal_chain SET hash = ${sha}`,
      'DELETE FROM journal_chain',
    ])
      await expect(dataSource.query(sql)).rejects.toThrow(/permission denied/);
    await expect(database.query('DELETE FROM billing.journal_chain')).rejects.toThrow(/append-only/);
    const cancelling = `INSERT INTO posting VALUES ('${first!.id}', 'overrun', 5), ('${first!.id}', 'adjustments', -5)`;
    await expect(dataSource.query(cancelling)).rejects.toThrow(/is booked: it takes no further posting/);
  });

  it('starts with the entries that were in the journal before the chain', async () => {
    const tenants = [await used(), await used()];
    const before = await Promise.all(tenants.map(chain));
    const older = mkdtempSync(join(tmpdir(), 'migrations-'));
    try {
      for (const name of readdirSync(MIGRATIONS.directory).filter((name) => /^0(0\d|1[0-3])_/.test(name)))
        copyFileSync(join(MIGRATIONS.directory, name), join(older, name));
      // The former state: without migration 013, and with entries.
      await database.query(`
        DROP TRIGGER entry_chained ON billing.journal_entry; DROP TRIGGER entry_is_open ON billing.posting;
        DROP TABLE billing.journal_chain;
        DROP FUNCTION billing.entry_text, billing.chain_entry, billing.refuse_late_posting;
        DELETE FROM billing.schema_migration WHERE number >= 13`);
      await migrate({ url: database.url, ...MIGRATIONS, directory: older });
    } finally {
      rmSync(older, { recursive: true });
    }
    expect(await Promise.all(tenants.map(chain))).toEqual(before);
    await database.query('GRANT SELECT ON billing.journal_chain TO tollgate_billing');
    await billing.topUps.add({ tenantId: tenants[0]!, amountCents: 1, source: 'manual', ref: newId('msg') });
    expect((await auditLedger(billing.dataSource, tenants)).differences).toEqual([]);
    expect(await chain(tenants[0]!)).toHaveLength(5);
  });

  it('names the first changed entry of each tenant', async () => {
    const tenants = await Promise.all([used(), used(), used()]);
    await database.query('SET session_replication_role = replica');
    for (const tenantId of tenants.slice(0, 2))
      await database.query(
        `UPDATE billing.journal_entry SET ref = ref || '!' WHERE tenant_id = $1 AND sequence IN (2, 4)`,
        [tenantId],
      );
    await database.query('SET session_replication_role = DEFAULT');
    const { differences } = await auditLedger(billing.dataSource, tenants);
    const second = async (tenantId: string) => (await billing.entries(tenantId))[1]!.id;
    expect(differences.map(({ check, tenantId, ids }) => [check, tenantId, ids])).toEqual(
      await Promise.all(
        tenants
          .slice(0, 2)
          .sort()
          .map(async (tenantId) => [CHAIN_CHECK.check, tenantId, [await second(tenantId)]]),
      ),
    );
  });
});
