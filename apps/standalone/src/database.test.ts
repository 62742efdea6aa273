import { newId } from '@tollgate/contracts';
import { TakeDown } from '@tollgate/runtime';
import { useTestDatabase } from '@tollgate/testing';
import { openDatabase } from './database';
import type { StandaloneSettings } from './settings';

const database = useTestDatabase();
const start = () =>
  openDatabase(
    { DATABASE_URL: database.url, TOLLGATE_WORKERS: 1, TOLLGATE_CONSOLE: true } as StandaloneSettings,
    new TakeDown('test'),
  );

it('the database of the distributed form is refused and not changed: its credit would be spent twice', async () => {
  await database.query('INSERT INTO billing.tenant_books (tenant_id) VALUES ($1)', [newId('ten')]);
  await expect(start()).resolves.toBe(database.url);
  // In the distributed form, holds are in Redis.
  await database.query('DROP SCHEMA admission CASCADE');
  const schemas = 'SELECT nspname AS name FROM pg_namespace ORDER BY 1';
  const before = await database.query(schemas);
  await expect(start()).rejects.toThrow(
    /^The database at DATABASE_URL has the books of the distributed form: start its services .*, or name another/,
  );
  expect(await database.query(schemas)).toEqual(before);
  // A first start that was interrupted between two schemas is repeated.
  await database.query('SET session_replication_role = replica; DELETE FROM billing.tenant_books');
  await expect(start()).resolves.toBe(database.url);
});
