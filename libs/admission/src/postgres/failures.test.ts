import { UnavailableError } from '@tollgate/contracts';
import { elapsedMs, eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { AdmissionClient } from '../client/admission-client';
import { TOKEN_NANOS, useFixture } from '../suite/store.fixture';
import { PostgresAdmissionStore } from './postgres-admission-store';

/** Two attempts of a second and a half each, and some more for a busy machine. */
const BOUND_MS = 4_000;

const database = useTestDatabase();
const fixture = useFixture(async () => new PostgresAdmissionStore({ url: database.url }));

describe('when PostgreSQL does not answer', () => {
  it('an unreachable server is an UnavailableError, in bounded time', async () => {
    const store = new PostgresAdmissionStore({ url: 'postgres://nobody@127.0.0.1:1/none' });
    const client = new AdmissionClient(store);
    const tookMs = await elapsedMs(async () => {
      await expect(store.start()).rejects.toThrow(UnavailableError);
      await expect(client.admit(fixture().request())).rejects.toThrow(UnavailableError);
    });
    expect(tookMs).toBeLessThan(BOUND_MS);
    await client.close();
    await store.close();
  });

  it('a tenant that stays locked is an UnavailableError in bounded time, and nothing is left behind', async () => {
    const f = fixture();
    await f.setBalance(10n ** 12n);
    const client = new AdmissionClient(f.store);
    const locker = new Client({ connectionString: database.url });
    await locker.connect();
    await locker.query('BEGIN');
    await locker.query('SELECT 1 FROM admission.tenant WHERE tenant_id = $1 FOR UPDATE', [f.tenantId]);
    const tookMs = await elapsedMs(() => expect(client.admit(f.request())).rejects.toThrow(UnavailableError));
    expect(tookMs).toBeLessThan(BOUND_MS);
    await locker.end();
    const request = f.request();
    await eventually(async () => expect(await client.admit(request)).toMatchObject({ kind: 'held' }));
    expect(await f.sums()).toMatchObject({ pendingHolds: 1 });
    await client.close();
  });

  it('broken connections are replaced without an error for the caller', async () => {
    const f = fixture();
    await f.setBalance(10n ** 12n);
    const client = new AdmissionClient(f.store);
    let cutting = true;
    let served = 0;
    const cutter = (async () => {
      for (let cut = 0; cut < 10; cut++) {
        const before = served;
        await database.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE application_name LIKE 'tollgate-admission%' AND datname = current_database()`,
        );
        // The store recovers in between.
        await eventually(() => expect(served).toBeGreaterThan(before));
      }
    })().finally(() => (cutting = false));
    while (cutting) {
      const request = f.request();
      const result = await client.admit(request).catch((error: unknown) => error);
      // Two breaks in a row are a refusal; anything else is an answer.
      if (result instanceof UnavailableError) continue;
      expect(result).toMatchObject({ kind: 'held' });
      const settled = await client
        .settle({ event: f.event(request.draft.id, TOKEN_NANOS) })
        .catch((error: unknown) => error);
      if (settled instanceof UnavailableError) continue;
      expect(settled).toMatchObject({ kind: 'settled' });
      served++;
    }
    await cutter;
    expect(served).toBeGreaterThan(0);
    const { settledHolds, settledNanos } = await f.sums();
    expect(settledHolds).toBeGreaterThanOrEqual(served);
    expect(settledNanos).toBe(BigInt(settledHolds) * TOKEN_NANOS);
    await client.close();
  });

  it('a server that accepts no writes is not ready, still serves reads, and recovers with writes', async () => {
    const [{ name }] = (await database.query<{ name: string }>('SELECT current_database() AS name')) as [
      { name: string },
    ];
    await database.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    try {
      await expect(store.check()).rejects.toThrow(/^the admission store cannot write: .*read-only transaction/);
      expect(await store.snapshot({ limit: 1 })).toEqual(expect.any(Array));
    } finally {
      await database.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
    }
    // Its connections were opened under the old setting.
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'tollgate-admission' AND datname = $1`,
      [name],
    );
    await eventually(() => store.check());
    await store.close();
  });

  it('the store is ready during a backup, which locks the table of the probe for its whole duration', async () => {
    const backup = new Client({ connectionString: database.url });
    await backup.connect();
    await backup.query('BEGIN');
    await backup.query('LOCK TABLE admission.write_probe IN ACCESS SHARE MODE');
    const store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await store.check();
    await backup.end();
    await store.close();
  });
});
