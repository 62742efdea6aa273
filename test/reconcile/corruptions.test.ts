import { PostgresAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { corruptionSuite } from './corruptions';

let admission: PostgresAdmissionStore;
// Runs before the hook of the database, which needs all connections closed.
afterAll(() => admission.close());
const database = useTestDatabase();

describe('reconcile with admission in PostgreSQL', () => {
  corruptionSuite(database, async () => {
    admission = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await admission.start();
    const hold = (id: string, tenantId: string, state: string, record: unknown) =>
      database.query(
        `INSERT INTO admission.hold (id, tenant_id, key_id, state, hold_nanos, cost_nanos, output_tokens, hold_tokens,
           key_tokens_per_minute, tenant_tokens_per_minute,
           deadline_ms, progressed_ms, unconfirmed_since_ms, record)
         VALUES ($1, $2, 'key_x', $3, 5, CASE $3 WHEN 'settled' THEN 5 END, 1, 1, 1, 1, 4e12, 1,
           CASE $3 WHEN 'settled' THEN 4e12 END, $4)`,
        [id, tenantId, state, JSON.stringify(record)],
      );
    return {
      admission,
      spoilers: {
        balance: async (tenantId, byNanos) =>
          void (await database.query(
            'UPDATE admission.tenant SET balance_nanos = balance_nanos + $2 WHERE tenant_id = $1',
            [tenantId, String(byNanos)],
          )),
        forget: async (tenantId) =>
          void (await database.query('DELETE FROM admission.tenant WHERE tenant_id = $1', [tenantId])),
        pending: async (tenantId, id) => void (await hold(id, tenantId, 'pending', {})),
        settled: async (event) => void (await hold(event.id, event.tenantId, 'settled', event)),
      },
    };
  });
});
