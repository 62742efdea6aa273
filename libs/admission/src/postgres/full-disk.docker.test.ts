import { UnavailableError } from '@tollgate/contracts';
import { migrateSchemas } from '@tollgate/postgres';
import { eventually, PATIENT_CALL_MS, usePostgresServer } from '@tollgate/testing';
import { Client } from 'pg';
import { Fixture } from '../suite/store.fixture';
import { MIGRATIONS } from '../index';
import { PostgresAdmissionStore } from './postgres-admission-store';

const postgres = usePostgresServer();
/** A file system in memory, 64 MB, in every container. */
const SMALL = '/dev/shm/small';
const FILL_ROWS = 100_000;

it('a store on a full disk is not ready, admits nobody, serves reads, and recovers when there is space', async () => {
  await migrateSchemas(postgres.url, [MIGRATIONS]);
  const sql = new Client({ connectionString: postgres.url });
  await sql.connect();
  const f = new Fixture(async () => {
    const store = new PostgresAdmissionStore({ url: postgres.url, callTimeoutMs: PATIENT_CALL_MS });
    await store.start();
    return store;
  });
  await f.setUp();
  await f.setBalance(10n ** 15n);
  await f.store.check();

  await postgres.exec(['install', '-d', '-o', 'postgres', SMALL]);
  await sql.query(`CREATE TABLESPACE small LOCATION '${SMALL}'`);
  for (const table of ['hold', 'write_probe']) await sql.query(`ALTER TABLE admission.${table} SET TABLESPACE small`);
  await sql.query('CREATE TABLE filler (text text) TABLESPACE small');
  // Fill it to the last page, in smaller and smaller steps.
  for (let rows = FILL_ROWS; rows >= 1; rows = Math.floor(rows / 10)) {
    const fill = async () =>
      sql.query(`INSERT INTO filler SELECT repeat('x', 900) FROM generate_series(1, $1)`, [rows]);
    await expect(
      (async () => {
        for (;;) await fill();
      })(),
    ).rejects.toMatchObject({ code: '53100' });
  }
  await eventually(() => expect(f.store.check()).rejects.toThrow(/cannot write: .*No space left on device/));
  await expect(f.admit(f.request())).rejects.toThrow(UnavailableError);
  expect(await f.sums()).toMatchObject({ pendingHolds: 0 });

  await sql.query('DROP TABLE filler');
  await eventually(() => f.store.check());
  expect(await f.admit(f.request())).toMatchObject({ kind: 'held' });
  await sql.end();
  await f.tearDown();
});
