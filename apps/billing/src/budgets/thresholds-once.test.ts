import { newId } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const database = useTestDatabase();
const MIGRATION = join(__dirname, '../migrations/011_thresholds_once.sql');

it('migration 011 keeps the first event of each threshold and month, and makes events append-only', async () => {
  // The state before it: a budget that changed to another amount recorded its thresholds again.
  await database.query(
    `ALTER TABLE billing.budget_event DROP CONSTRAINT budget_event_pkey, DROP COLUMN changed_version,
       ADD PRIMARY KEY (tenant_id, period, key_id, budget_cents, threshold_percent)`,
  );
  const tenantId = newId('ten');
  const keyId = newId('key');
  await database.query('INSERT INTO billing.tenant_books (tenant_id) VALUES ($1)', [tenantId]);
  const told: [period: string, keyId: string, cents: number, percent: number][] = [
    ['2026-10', '', 100, 50],
    ['2026-11', '', 200, 50],
    ['2026-11', '', 100, 50],
    ['2026-11', '', 100, 80],
    ['2026-11', keyId, 100, 50],
    ['2026-11', '', 300, 50],
  ];
  for (const [i, [period, key, cents, percent]] of told.entries())
    await database.query(
      `INSERT INTO billing.budget_event (id, tenant_id, period, key_id, budget_cents, threshold_percent, spent_nanos)
       VALUES ($1, $2, $3, $4, $5, $6, 0)`,
      [newId('evt', Date.UTC(2026, 10, 1) + i), tenantId, period, key, cents, percent],
    );
  await database.query(`SET search_path TO billing; ${readFileSync(MIGRATION, 'utf8')}`);
  const left = await database.query<{ line: string }>(
    `SELECT concat_ws(' ', period, key_id, budget_cents, threshold_percent) AS line
     FROM billing.budget_event
     ORDER BY id`,
  );
  expect(left.map(({ line }) => line)).toEqual([
    '2026-10  100 50',
    '2026-11  200 50',
    '2026-11  100 80',
    `2026-11 ${keyId} 100 50`,
  ]);
  await expect(database.query('DELETE FROM billing.budget_event')).rejects.toThrow(/append-only/);
});
