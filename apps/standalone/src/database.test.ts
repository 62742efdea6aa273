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
const schemas = () => database.query<{ name: string }>('SELECT nspname AS name FROM pg_namespace ORDER BY 1');
const REFUSED = /^The database is that of the distributed form: start its services .*, or name another/;

it('the database of the distributed form is refused and not changed: its credit would be spent twice', async () => {
  await expect(start()).resolves.toBe(database.url);
  // What the moving procedure does to the database that stays behind. The distributed form has its holds in Redis.
  await database.query('ALTER SCHEMA admission RENAME TO moved_admission');
  const before = await schemas();
  await expect(start()).rejects.toThrow(REFUSED);
  expect(await schemas()).toEqual(before);
  // Also one service alone, before its first tenant.
  await database.query('DROP SCHEMA metering, billing, console CASCADE');
  await expect(start()).rejects.toThrow(REFUSED);
});

it('a first start that was interrupted between two schemas is repeated', async () => {
  const made = await database.query<{ name: string }>(
    `SELECT relnamespace::regnamespace AS name FROM pg_class WHERE relname = 'schema_migration'`,
  );
  await database.query(`DROP SCHEMA ${made.map(({ name }) => name).join(', ')} CASCADE`);
  await database.query('CREATE SCHEMA billing; CREATE TABLE billing.outbox (data int)');
  await expect(start()).rejects.toThrow(/outbox/);
  const begun = (await schemas()).map(({ name }) => name);
  expect([begun.includes('admission'), begun.includes('credentials')]).toEqual([true, false]);
  await database.query('DROP SCHEMA billing CASCADE');
  await expect(start()).resolves.toBe(database.url);
});
