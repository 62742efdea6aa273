import { newId, UnavailableError } from '@tollgate/contracts';
import { openDataSource } from '@tollgate/postgres';
import { eventually, useTestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { auditLedger, TENANTS_SQL } from './audit';
import { CHAIN_CHECK } from './chain';
import { SPENDING_CHECK } from './spending-audit';

// Each test spoils one row behind the triggers' back, as a bad restore or a manual change would.
const database = useTestDatabase();
/** Longer than a slow machine takes for a statement that waits for nothing. */
const SHORT_MS = 3_000;

describe('the audit of the ledger finds', () => {
  const billing = useBilling(database);
  let tenantId: string;
  let charges: ReturnType<typeof charge>[];

  beforeEach(async () => {
    tenantId = await billing.tenant(1_000);
    charges = [1, 2, 3, 4].map((i) => charge(tenantId, BigInt(i) * CENT + 1n, { endedAt: '2026-11-10T00:00:00Z' }));
    await billing.gatherer.gather(charges.slice(0, 2));
    await billing.poster.postDue();
    await billing.gatherer.gather(charges.slice(2, 3));
    await billing.poster.postDue();
    await billing.gatherer.gather([{ ...charges[3]!, costNanos: '5' }]);
  });

  const spoil = async (sql: string) => {
    await database.query('SET session_replication_role = replica');
    try {
      await database.query(sql.replaceAll('$tenant', `'${tenantId}'`).replaceAll('$first', `'${charges[0]!.id}'`));
    } finally {
      await database.query('SET session_replication_role = DEFAULT');
    }
  };
  const entry = (sequence: number) =>
    `(SELECT id FROM billing.journal_entry WHERE tenant_id = $tenant AND sequence = ${sequence})`;

  it('nothing in sound books', async () => {
    expect(await auditLedger(billing.dataSource, [tenantId])).toEqual({
      heads: [{ tenantId, sequence: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      totals: { chargesNanos: 6n * CENT + 8n, debitsNanos: 6n * CENT, carriedNanos: 8n },
      differences: [],
    });
  });

  it('the first hundred differences of a kind, and says that there are more', async () => {
    const months = (count: number) =>
      spoil(
        `INSERT INTO billing.tenant_month (tenant_id, period, last_seq)
         SELECT $tenant, to_char(date '2000-01-01' + n * interval '1 month', 'YYYY-MM'), 1
         FROM generate_series(1, ${count}) n ON CONFLICT DO NOTHING`,
      );
    await months(100);
    const all = await auditLedger(billing.dataSource, [tenantId]);
    expect([all.differences.length, all.truncated]).toEqual([100, undefined]);
    await months(101);
    const some = await auditLedger(billing.dataSource, [tenantId]);
    expect([some.differences.length, some.truncated]).toEqual([100, true]);
  });

  describe('with statements that take long,', () => {
    let dataSource: DataSource;
    let stopping: AbortController;
    let audit: ReturnType<typeof auditLedger>;

    beforeEach(async () => {
      const { url } = database;
      dataSource = await openDataSource({ url, schema: 'billing', applicationName: 'impatient', poolSize: 1 });
      const runner = dataSource.createQueryRunner();
      // For the one connection of this pool: seconds instead of a minute, on this side and on the server.
      const client = (await runner.connect()) as { connectionParameters: { query_timeout: number } };
      await runner.query(`SET statement_timeout = ${SHORT_MS}`);
      client.connectionParameters.query_timeout = SHORT_MS;
      await runner.release();
      await database.query('BEGIN');
      await database.query('LOCK TABLE billing.charge IN ACCESS EXCLUSIVE MODE');
      stopping = new AbortController();
      audit = auditLedger(dataSource, [tenantId], stopping.signal);
      audit.catch(() => {});
      await eventually(async () => {
        const waiting = await database.query(
          `SELECT FROM pg_stat_activity WHERE application_name = 'impatient' AND datname = current_database()
            AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - $1 * interval '1 ms'`,
          [1.2 * SHORT_MS],
        );
        expect(waiting).toHaveLength(1);
      });
    });
    afterEach(async () => {
      await database.query('ROLLBACK');
      await dataSource.destroy();
    });

    it('nothing, because they may take longer than other statements of the service', async () => {
      await database.query('COMMIT');
      expect((await audit).differences).toEqual([]);
      expect(await dataSource.query('SHOW statement_timeout')).toEqual([{ statement_timeout: '3s' }]);
    });

    it('nothing, because it is stopped in the middle of one', async () => {
      stopping.abort(new UnavailableError('stopped'));
      await expect(audit).rejects.toThrow('stopped');
      expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });
  });

  it('sums from the indexes of the charges alone, without their rows', async () => {
    await database.query('VACUUM billing.charge');
    // For few rows the planner prefers a full scan. The question is whether the index suffices.
    await database.query('SET enable_seqscan = off');
    await database.query('SET search_path = billing');
    try {
      const rows = await database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${TENANTS_SQL}`, [[tenantId]]);
      const scans = rows.flatMap((row) => /\w[\w ]* on charge\b/.exec(row['QUERY PLAN'])?.[0] ?? []);
      expect(scans).toEqual([
        'Index Only Scan using charge_seq on charge',
        'Index Only Scan using charge_overrun on charge',
      ]);
    } finally {
      await database.query('RESET enable_seqscan');
      await database.query('RESET search_path');
    }
  });

  const covered = 'every charge range names its charges and sums them';
  const month = 'every month is the sum of its rows';
  const ofMonth = 'every charge is in a month of its tenant';
  const total = 'charges = usage debits + carried';
  const chain = CHAIN_CHECK.check;
  const spent = SPENDING_CHECK.check;
  it.each<[what: string, sql: string, checks: string[]]>([
    ['a missing charge', `DELETE FROM billing.charge WHERE id = $first`, [total, covered, month, spent]],
    [
      'a changed charge',
      `UPDATE billing.charge SET cost_nanos = cost_nanos + 1 WHERE id = $first`,
      [total, covered, spent],
    ],
    [
      'a charge that ended in another month',
      `UPDATE billing.charge SET ended_at = ended_at - interval '1 month' WHERE id = $first`,
      [spent],
    ],
    ['another spending', `UPDATE billing.budget_month SET spent_nanos = 1 WHERE tenant_id = $tenant`, [spent]],
    [
      'a charge that was gathered twice',
      `INSERT INTO billing.charge
       SELECT 'req_again', tenant_id, key_id, cost_nanos, ended_at, period, 99
       FROM billing.charge
       WHERE id = $first`,
      [total, month, spent],
    ],
    [
      'a charge moved to another month',
      `UPDATE billing.charge SET period = '2026-10' WHERE id = $first`,
      [covered, month, ofMonth],
    ],
    [
      'a doubled debit',
      `INSERT INTO billing.journal_entry
       SELECT 'ent_again_' || tenant_id, tenant_id, 9, type, amount_cents, source, 'again', input_hash, period,
         balance_after_cents, created_at
       FROM billing.journal_entry WHERE tenant_id = $tenant AND sequence = 2`,
      [
        total,
        'balance = sum of entries',
        'entries are numbered without a gap',
        'postings of an entry sum to zero',
        'every entry continues the balance before it',
        'every usage entry has its charge range',
        chain,
      ],
    ],
    [
      'a changed amount',
      `UPDATE billing.journal_entry SET amount_cents = amount_cents - 1 WHERE tenant_id = $tenant AND sequence = 2`,
      [
        total,
        'balance = sum of entries',
        'postings of an entry sum to zero',
        'every entry continues the balance before it',
        covered,
        chain,
      ],
    ],
    [
      'a changed posting',
      `UPDATE billing.posting
       SET amount_cents = amount_cents + 1
       WHERE entry_id = ${entry(2)} AND account = 'usage_revenue'`,
      ['postings of an entry sum to zero', chain],
    ],
    [
      'a missing posting',
      `DELETE FROM billing.posting WHERE entry_id = ${entry(1)} AND account = 'payments_clearing'`,
      ['postings of an entry sum to zero', chain],
    ],
    [
      'a changed balance in the books',
      `UPDATE billing.tenant_books SET balance_cents = balance_cents + 1 WHERE tenant_id = $tenant`,
      ['balance = sum of entries'],
    ],
    [
      'a changed remainder in the books',
      `UPDATE billing.tenant_books SET carried_nanos = carried_nanos + 1 WHERE tenant_id = $tenant`,
      [total, 'carried = remainder of the newest charge range'],
    ],
    [
      'a changed running balance',
      `UPDATE billing.journal_entry SET balance_after_cents = 5 WHERE tenant_id = $tenant AND sequence = 2`,
      ['every entry continues the balance before it', chain],
    ],
    [
      'a missing charge range',
      `DELETE FROM billing.coverage WHERE tenant_id = $tenant AND number = 1`,
      [
        'charge ranges are numbered without a gap',
        'charge ranges form a chain without gap or overlap',
        'every usage entry has its charge range',
        month,
      ],
    ],
    [
      'an overlapping charge range',
      `UPDATE billing.coverage SET from_seq = 2 WHERE tenant_id = $tenant AND number = 2`,
      [covered, 'charge ranges form a chain without gap or overlap'],
    ],
    ['a missing month', `DELETE FROM billing.tenant_month WHERE tenant_id = $tenant`, [ofMonth]],
    ['a changed month', `UPDATE billing.tenant_month SET debited_cents = 1 WHERE tenant_id = $tenant`, [month]],
  ])('%s', async (_, sql, checks) => {
    await spoil(sql);
    const { differences } = await auditLedger(billing.dataSource, [tenantId, newId('ten')]);
    expect([...new Set(differences.map((difference) => difference.check))].sort()).toEqual([...checks].sort());
    expect(
      differences.every((difference) => difference.tenantId === tenantId && difference.expected !== difference.actual),
    ).toBe(true);
  });
});
