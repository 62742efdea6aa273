import { newId } from '@tollgate/contracts';
import { serviceRole, sqlState } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { MIGRATIONS } from '../database';
import { openRejected } from '../gather/rejected';
import { CENT, charge, useBilling } from '../testing/billing.fixture';

// Statements that the database itself refuses. The service's connections have the ledger role; `database` is the owner
// (a superuser here).
const database = useTestDatabase();
const IMMUTABLE = ['charge', 'rejected_charge', 'journal_entry', 'posting', 'coverage', 'journal_chain'];

describe('append-only', () => {
  const billing = useBilling(database);

  beforeAll(async () => {
    const tenantId = await billing.tenant();
    await billing.gatherer.gather([charge(tenantId, 2n * CENT), charge(tenantId, -1n)]);
    await billing.poster.postDue();
  });

  it('the service runs under the ledger role', async () => {
    expect(await billing.dataSource.query('SELECT current_user AS role')).toEqual([
      { role: serviceRole(MIGRATIONS.schema) },
    ]);
  });

  it('the ledger role may quarantine a message that can never be published, and not change it afterwards', async () => {
    const columns = 'id, topic, data, created_at, refused_reason';
    await billing.dataSource.query(
      `INSERT INTO outbox_refused (${columns}) VALUES (1, 'charges', '{}', now(), 'test')`,
    );
    await expect(billing.dataSource.query('DELETE FROM outbox_refused')).rejects.toThrow(/permission denied/);
  });

  describe.each(IMMUTABLE)('%s', (table) => {
    const column =
      { posting: 'entry_id', coverage: 'tenant_id', rejected_charge: 'reason', journal_chain: 'format' }[table] ?? 'id';
    const changes = [
      `UPDATE billing.${table} SET ${column} = ${column}`,
      `DELETE FROM billing.${table}`,
      `TRUNCATE billing.${table} CASCADE`,
    ];

    it.each(changes)('%s is refused by right', async (sql) => {
      const error = await billing.dataSource.query(sql).catch((thrown: unknown) => thrown);
      expect(sqlState(error)).toBe('42501');
      expect(String(error)).toMatch(/permission denied/);
    });

    it.each(changes)('%s is refused by trigger, even for the owner', async (sql) => {
      expect((await database.query(`SELECT FROM billing.${table}`)).length).toBeGreaterThan(0);
      await expect(database.query(sql)).rejects.toThrow(/is append-only/);
    });
  });

  it('only the count and the last time of a quarantined charge can change, and the count only goes up', async () => {
    await billing.dataSource.query('UPDATE rejected_charge SET times = times + 1, last_at = now()');
    for (const change of [
      'times = times - 1',
      'times = times',
      `times = times + 1, data = '{}'`,
      `times = times + 1, last_at = '2000-01-01'`,
    ]) {
      await expect(database.query(`UPDATE billing.rejected_charge SET ${change}`)).rejects.toThrow(/is append-only/);
    }
  });

  it('only the owner can dismiss a quarantined charge, and dismissing changes nothing else of it', async () => {
    const dismissal = 'UPDATE billing.rejected_charge SET dismissed_at = now()';
    const error = await billing.dataSource.query(dismissal).catch((thrown: unknown) => thrown);
    expect(sqlState(error)).toBe('42501');
    await expect(database.query(`${dismissal}, data = '{}'`)).rejects.toThrow(/is append-only/);
    await expect(database.query(`${dismissal}, times = times - 1`)).rejects.toThrow(/is append-only/);
    await database.query(dismissal);
    expect(await openRejected(billing.dataSource.manager)).toBe(0);
    await database.query('UPDATE billing.rejected_charge SET dismissed_at = NULL');
    expect(await openRejected(billing.dataSource.manager)).toBeGreaterThan(0);
  });

  it('the ledger role can neither disable a trigger nor drop the journal', async () => {
    await expect(billing.dataSource.query('ALTER TABLE billing.posting DISABLE TRIGGER ALL')).rejects.toThrow(
      /must be owner/,
    );
    await expect(billing.dataSource.query('DROP TABLE billing.posting')).rejects.toThrow(/must be owner/);
    await expect(billing.dataSource.query('DELETE FROM billing.tenant_books')).rejects.toThrow(/permission denied/);
  });
});

describe('the database', () => {
  const billing = useBilling(database);
  let tenantId: string;
  beforeEach(async () => {
    tenantId = await billing.tenant(100);
  });

  const entry = (fields: Partial<Record<string, unknown>> = {}) => {
    const row = {
      id: newId('ent'),
      tenant: tenantId,
      sequence: 2,
      type: 'topup',
      amount: 5,
      source: 'manual',
      ref: newId('msg'),
      after: 105,
      ...fields,
    };
    return {
      id: row.id,
      sql: `INSERT INTO billing.journal_entry (id, tenant_id, sequence, type, amount_cents, source, ref, input_hash,
          period, balance_after_cents, created_at)
        VALUES ('${row.id}', '${row.tenant}', ${row.sequence}, '${row.type}', ${row.amount}, '${row.source}',
          '${row.ref}', sha256('x'), '2026-11', ${row.after}, now())`,
    };
  };
  const postings = (id: string, legs: Record<string, number>) =>
    `INSERT INTO billing.posting VALUES ${Object.entries(legs)
      .map(([account, cents]) => `('${id}', '${account}', ${cents})`)
      .join(', ')}`;
  const books = (fields: string) =>
    `UPDATE billing.tenant_books SET version = version + 1, ${fields} WHERE tenant_id = '${tenantId}'`;
  const commit = (...statements: string[]) =>
    billing.dataSource.transaction(async (tx) => {
      for (const statement of statements) await tx.query(statement);
    });

  it('accepts correct rows, so that the following tests fail for their own reason', async () => {
    const { id, sql } = entry();
    await commit(
      sql,
      postings(id, { credit: 5, payments_clearing: -5 }),
      books('balance_cents = 105, last_sequence = 2'),
    );
  });

  it.each([
    ['postings that do not sum to zero', { credit: 5, payments_clearing: -4 }, /postings sum to 1/],
    ['a balanced entry whose credit is not its amount', { credit: 4, payments_clearing: -4 }, /credit is 4/],
  ])('refuses %s', async (_, legs, message) => {
    const { id, sql } = entry();
    await expect(commit(sql, postings(id, legs), books('balance_cents = 105, last_sequence = 2'))).rejects.toThrow(
      message,
    );
  });

  it('refuses an entry without postings', async () => {
    await expect(commit(entry().sql, books('balance_cents = 105, last_sequence = 2'))).rejects.toThrow(
      /postings sum to 0, credit is 0/,
    );
  });

  it('refuses a posting added to a booked entry', async () => {
    const [first] = await billing.entries(tenantId);
    await expect(commit(postings(first!.id, { overrun: 1 }))).rejects.toThrow(/is booked/);
    // Nor two postings that leave its sum unchanged.
    await expect(commit(postings(first!.id, { overrun: 1, adjustments: -1 }))).rejects.toThrow(/is booked/);
  });

  it('refuses a running balance that does not continue the one before it, and a gap in the sequence', async () => {
    await expect(commit(entry({ after: 106 }).sql)).rejects.toThrow(/balance 106 is not 100 \+ 5/);
    await expect(commit(entry({ sequence: 3 }).sql)).rejects.toThrow(/no entry 2/);
    await expect(commit(entry({ sequence: 1, after: 5 }).sql)).rejects.toThrow(/journal_entry_sequence/);
  });

  it('refuses usage and refunds below zero', async () => {
    await expect(commit(entry({ type: 'usage', source: 'metering', amount: -101, after: -1 }).sql)).rejects.toThrow(
      /balance_not_below_zero/,
    );
    await expect(commit(entry({ type: 'refund', amount: -101, after: -1 }).sql)).rejects.toThrow(
      /balance_not_below_zero/,
    );
  });

  it('refuses an amount whose sign does not fit its type, and a second entry of one source and ref', async () => {
    await expect(commit(entry({ type: 'topup', amount: -5, after: 95 }).sql)).rejects.toThrow(
      /amount_cents_check|journal_entry_check/,
    );
    await expect(commit(entry({ ref: 'first' }).sql)).rejects.toThrow(/journal_entry_idempotency/);
  });

  it('refuses books whose balance is not that of the journal', async () => {
    await expect(commit(books('balance_cents = 101'))).rejects.toThrow(/the journal says 100/);
    const { id, sql } = entry();
    await expect(commit(sql, postings(id, { credit: 5, payments_clearing: -5 }))).rejects.toThrow(
      /balance 100 at entry 1, the journal says 105/,
    );
    await expect(commit(`UPDATE billing.tenant_books SET version = 0 WHERE tenant_id = '${tenantId}'`)).rejects.toThrow(
      /would go back/,
    );
  });

  it('refuses usage that covers no charges, the wrong ones, or sums them wrongly', async () => {
    await billing.gatherer.gather([charge(tenantId, CENT + 1n, { endedAt: '2026-11-05T00:00:00Z' })]);
    const { id, sql } = entry({ type: 'usage', source: 'metering', amount: -1, after: 99 });
    const booked = [
      sql,
      postings(id, { credit: -1, usage_revenue: 1 }),
      books('balance_cents = 99, last_sequence = 2'),
    ];
    const cover = (values: string) => `INSERT INTO billing.coverage VALUES ('${tenantId}', ${values}, '${id}')`;
    await expect(commit(...booked)).rejects.toThrow(/covers no charges/);
    await expect(commit(...booked, cover(`1, '2026-11', 1, 2, 10000001, 0, 1, 1`))).rejects.toThrow(
      /1 charges of 10000001 nanos/,
    );
    await expect(commit(...booked, cover(`1, '2026-11', 1, 1, 10000002, 0, 1, 2`))).rejects.toThrow(
      /1 charges of 10000001 nanos, not 10000002/,
    );
    await expect(commit(...booked, cover(`1, '2026-11', 1, 1, 10000001, 0, 1, 2`))).rejects.toThrow(/covered_exactly/);
    await expect(commit(...booked, cover(`1, '2026-11', 1, 1, 10000001, 1, 1, 2`))).rejects.toThrow(/breaks the chain/);
    await expect(commit(...booked, cover(`1, '2026-11', 2, 2, 10000001, 0, 1, 1`))).rejects.toThrow(
      /starts at charge 2/,
    );
    await expect(commit(...booked, cover(`1, '2026-10', 1, 1, 10000001, 0, 1, 1`))).rejects.toThrow(/0 charges/);
    await commit(...booked, cover(`1, '2026-11', 1, 1, 10000001, 0, 1, 1`));
  });
});
