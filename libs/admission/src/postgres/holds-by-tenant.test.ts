import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { PostgresAdmissionStore } from './postgres-admission-store';

const database = useTestDatabase();
const TENANTS = 50;
const HOLDS_EACH = 100;
const tenant = (n: number) => `ten_${String(n).padStart(3, '0')}`;

/** The number of hold rows read so far, by scans or through an index. Connections report it when they end. */
async function rowsRead(): Promise<number> {
  const [row] = await database.query<{ rows: string }>(
    `SELECT seq_tup_read + idx_tup_fetch AS rows FROM pg_stat_user_tables
     WHERE schemaname = 'admission' AND relname = 'hold'`,
  );
  return Number(row!.rows);
}

it('the query reads only the holds of the requested tenants, however many other tenants have', async () => {
  await database.query(`INSERT INTO admission.tenant (tenant_id) SELECT unnest($1::text[])`, [
    Array.from({ length: TENANTS }, (_, n) => tenant(n)),
  ]);
  // Ordered by id, the holds of all tenants are mixed.
  await database.query(
    `INSERT INTO admission.hold (id, tenant_id, key_id, hold_nanos, output_tokens, hold_tokens,
                                 key_tokens_per_minute, tenant_tokens_per_minute, deadline_ms, progressed_ms, record)
     SELECT 'req_' || lpad(n::text, 6, '0'), 'ten_' || lpad((n % $1::int)::text, 3, '0'), 'key_x', 5, 1, 1,
            1, 1, 4e12, 1, '{}'
     FROM generate_series(0, $1::int * $2::int - 1) n`,
    [TENANTS, HOLDS_EACH],
  );
  await database.query('VACUUM ANALYZE admission.hold');
  const before = await rowsRead();
  const store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  try {
    expect(await store.snapshot({ tenantId: tenant(7), limit: 1 })).toMatchObject([{ pendingHolds: HOLDS_EACH }]);
    expect(await store.snapshot({ after: tenant(20), limit: 2 })).toMatchObject([
      { tenantId: tenant(21), pendingHolds: HOLDS_EACH, holdRowsPendingNanos: 5n * BigInt(HOLDS_EACH) },
      { tenantId: tenant(22), pendingHolds: HOLDS_EACH, settledHolds: 0, oldestSettledId: null },
    ]);
    const holds = await store.holds({ tenantId: tenant(7), after: 'req_000007', limit: 10 });
    expect(holds.map(({ id }) => id).slice(0, 2)).toEqual(['req_000057', 'req_000107']);
  } finally {
    await store.close();
  }
  await eventually(async () => expect((await rowsRead()) - before).toBe(3 * HOLDS_EACH + 10));
});
