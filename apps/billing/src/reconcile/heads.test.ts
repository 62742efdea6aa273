import { newId, type JournalHead } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { useBilling } from '../testing/billing.fixture';
import { auditLedger } from './audit';
import { compareHeads, HeadsLogger, journalHeads, KEPT_CHECK } from './heads';

const database = useTestDatabase();

describe('heads of the journal that were kept elsewhere', () => {
  const billing = useBilling(database);
  const compare = async (heads: JournalHead[]) => (await compareHeads(billing.dataSource, { heads })).differences;
  const topUp = (tenantId: string) =>
    billing.topUps.add({ tenantId, amountCents: 5, source: 'manual', ref: newId('msg') });

  async function allHeads(): Promise<JournalHead[]> {
    const heads: JournalHead[] = [];
    for (let after: string | null = ''; after !== null;) {
      const page: Awaited<ReturnType<typeof journalHeads>> = await journalHeads(billing.dataSource, {
        limit: 2,
        after,
      });
      heads.push(...page.data);
      after = page.nextCursor;
    }
    return heads;
  }

  /**
   * A forgery within an owner's power: another amount in the past, every later sum corrected, and every hash computed
   * again.
   */
  async function rewrite(tenantId: string): Promise<void> {
    await database.query('SET session_replication_role = replica');
    await database.query('SET search_path = billing');
    try {
      for (const sql of [
        `UPDATE posting
         SET amount_cents = amount_cents + 7 * sign(amount_cents)
         WHERE entry_id = (SELECT id FROM journal_entry WHERE tenant_id = $1 AND sequence = 2)`,
        `UPDATE journal_entry SET amount_cents = amount_cents + 7 WHERE tenant_id = $1 AND sequence = 2`,
        `UPDATE journal_entry SET balance_after_cents = balance_after_cents + 7 WHERE tenant_id = $1 AND sequence >= 2`,
        `UPDATE tenant_books SET balance_cents = balance_cents + 7 WHERE tenant_id = $1`,
      ])
        await database.query(sql, [tenantId]);
      for (const sequence of [2, 3, 4])
        await database.query(
          `UPDATE journal_chain c
           SET hash = sha256(convert_to(
             entry_text(e, (SELECT hash FROM journal_chain WHERE tenant_id = $1 AND sequence = $2 - 1)),
             'UTF8'
           ))
           FROM journal_entry e WHERE (c.tenant_id, c.sequence) = ($1, $2) AND (e.tenant_id, e.sequence) = ($1, $2)`,
          [tenantId, sequence],
        );
    } finally {
      await database.query('RESET search_path');
      await database.query('SET session_replication_role = DEFAULT');
    }
  }

  it('name tenant and entry when an owner rewrote everything, which no check inside can show', async () => {
    const tenants = (await Promise.all([1, 2, 3].map(() => billing.tenant(100)))).sort();
    for (let i = 0; i < 2; i++) for (const tenantId of tenants) await topUp(tenantId);
    const kept = await allHeads();
    expect(kept.map(({ tenantId, sequence }) => [tenantId, sequence])).toEqual(tenants.map((id) => [id, 3]));
    for (const tenantId of tenants) await topUp(tenantId);
    expect(await compare(kept)).toEqual([]);

    await rewrite(tenants[1]!);
    expect((await auditLedger(billing.dataSource, tenants)).differences).toEqual([]);
    const third = (await billing.entries(tenants[1]!))[2]!.id;
    expect(await compare(kept)).toEqual([
      {
        check: KEPT_CHECK,
        tenantId: tenants[1],
        expected: `entry 3: ${kept[1]!.hash}`,
        actual: expect.stringMatching(/^entry 3: [0-9a-f]{64}$/),
        ids: [third],
      },
    ]);
  });

  it('name an entry that no longer exists', async () => {
    const tenantId = await billing.tenant(100);
    await topUp(tenantId);
    const kept = (await allHeads()).filter((head) => head.tenantId === tenantId);
    await database.query('SET session_replication_role = replica');
    await database.query(
      `DELETE FROM billing.posting p USING billing.journal_entry e
       WHERE e.id = p.entry_id AND tenant_id = $1 AND sequence = 2`,
      [tenantId],
    );
    for (const table of ['journal_entry', 'journal_chain'])
      await database.query(`DELETE FROM billing.${table} WHERE tenant_id = $1 AND sequence = 2`, [tenantId]);
    await database.query(
      'UPDATE billing.tenant_books SET last_sequence = 1, balance_cents = 100 WHERE tenant_id = $1',
      [tenantId],
    );
    await database.query('SET session_replication_role = DEFAULT');
    expect((await auditLedger(billing.dataSource, [tenantId])).differences).toEqual([]);
    expect(await compare(kept)).toMatchObject([{ tenantId, actual: 'entry 2: none', ids: [] }]);
  });

  it('are logged: at the start those of the last day, then those that moved', async () => {
    const lines: string[] = [];
    const [moved, still] = [await billing.tenant(100), await billing.tenant(100)];
    await database.query('SET session_replication_role = replica');
    await database.query(
      `UPDATE billing.journal_entry SET created_at = created_at - interval '2 days' WHERE tenant_id = $1`,
      [still],
    );
    await database.query('SET session_replication_role = DEFAULT');
    class Collecting extends HeadsLogger {
      protected override write(heads: string[]): void {
        lines.push(...heads);
      }
    }
    const heads = new Collecting(billing.dataSource);
    await heads.log();
    const logged = () => lines.filter((line) => line.startsWith(moved) || line.startsWith(still));
    expect(logged()).toEqual([expect.stringMatching(new RegExp(`^${moved} 1 [0-9a-f]{64}$`))]);
    lines.length = 0;
    await topUp(still);
    await heads.log();
    expect(logged()).toContainEqual(expect.stringMatching(new RegExp(`^${still} 2 [0-9a-f]{64}$`)));
  });

  it('are refused when they are invalid or too many', async () => {
    const head = { tenantId: 'x', sequence: 1, hash: '0'.repeat(64) };
    for (const heads of [
      null,
      [{ ...head, sequence: 0 }],
      [{ ...head, hash: 'x' }],
      Array.from({ length: 201 }, () => head),
    ])
      await expect(compare(heads as never)).rejects.toMatchObject({ code: 'invalid_parameter' });
    await expect(journalHeads(billing.dataSource, { limit: 0 })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });
});
