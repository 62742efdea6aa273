import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@tollgate/runtime';
import { useTestDatabase, withDatabase } from '@tollgate/testing';
import { checkSchema, migrateSchema, migrateSchemas } from './index';

const database = useTestDatabase();
const ofStandalone = useTestDatabase();
const NEWER_THAN_ANY = 99;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'checks-'));
  await writeFile(join(directory, '001_a.sql'), 'CREATE TABLE a (id int PRIMARY KEY);');
  await database.query('DROP SCHEMA admission CASCADE');
});
afterAll(() => rm(directory, { recursive: true }));

const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StartError);
  return (error as Error).message;
};

describe('a start', () => {
  it('is refused on a missing, older or newer schema, and on a changed migration, and changes nothing', async () => {
    const schema = { schema: 'checked', directory };
    const check = () => checkSchema(database.url, schema);
    expect(await refusal(check())).toMatch(/^The schema "checked" is not there: run this service once with --migrate/);
    expect(await database.query(`SELECT to_regnamespace('checked') AS found`)).toEqual([{ found: null }]);

    expect(await migrateSchema(database.url, schema)).toBe('The schema "checked" was migrated: 001_a.sql.');
    expect(await migrateSchema(database.url, schema)).toBe('The schema "checked" is up to date.');
    await check();

    await writeFile(join(directory, '002_b.sql'), 'ALTER TABLE a ADD COLUMN b int;');
    expect(await refusal(check())).toMatch(/is 1 migration behind this version of Tollgate: run .* --migrate/);
    await migrateSchemas(database.url, [schema]);
    await check();

    await writeFile(join(directory, '002_b.sql'), 'SELECT 1;');
    expect(await refusal(check())).toMatch(/changed after it was applied/);
    await rm(join(directory, '002_b.sql'));
    expect(await refusal(check())).toMatch(
      /was migrated by a newer version of Tollgate \(migration 2; this version knows 1\)/,
    );
  });

  it('migrates none of several schemas when a newer version migrated one of them', async () => {
    const newer = await mkdtemp(join(tmpdir(), 'newer-'));
    await writeFile(join(newer, '001_a.sql'), 'CREATE TABLE a (id int PRIMARY KEY);');
    const [first, last] = [
      { schema: 'first_of_two', directory: newer },
      { schema: 'last_of_two', directory: newer },
    ];
    await migrateSchemas(database.url, [first]);
    await writeFile(join(newer, '002_b.sql'), 'ALTER TABLE a ADD COLUMN b int;');
    await migrateSchemas(database.url, [last]);
    const older = await mkdtemp(join(tmpdir(), 'older-'));
    await writeFile(join(older, '001_a.sql'), 'CREATE TABLE a (id int PRIMARY KEY);');
    await writeFile(join(older, 'rights.sql'), 'GRANT SELECT ON a TO tollgate_first_of_two;');

    const schemas = ['first_of_two', 'never_made', 'last_of_two'].map((schema) => ({ schema, directory: older }));
    expect(await refusal(migrateSchemas(database.url, schemas))).toMatch(/^The schema "last_of_two" was migrated by a/);
    expect(await database.query(`SELECT to_regnamespace('never_made') AS found`)).toEqual([{ found: null }]);
    expect(await database.query(`SELECT to_regrole('tollgate_first_of_two') AS role`)).toEqual([{ role: null }]);
    await Promise.all([newer, older].map((folder) => rm(folder, { recursive: true })));
  });

  it('is refused on a server that is too old, before it creates anything there', async () => {
    const schema = { schema: 'too_old', directory };
    const tooOld = /^PostgreSQL \d+\S*.* is too old: Tollgate needs 99 or newer at DATABASE_URL\.$/;
    expect(await refusal(checkSchema(database.url, schema, NEWER_THAN_ANY))).toMatch(tooOld);
    expect(await refusal(migrateSchemas(database.url, [schema], NEWER_THAN_ANY))).toMatch(tooOld);
    expect(await database.query(`SELECT to_regnamespace('too_old') AS found`)).toEqual([{ found: null }]);
  });

  it('of a service is refused on the database of a standalone form: its credit would be spent twice', async () => {
    const schema = { schema: 'of_service', directory };
    const refused = /^The database of DATABASE_URL is that of a standalone form: name another one, and move the books/;
    expect(await refusal(migrateSchema(ofStandalone.url, schema))).toMatch(refused);
    expect(await refusal(checkSchema(ofStandalone.url, schema))).toMatch(refused);
    expect(await ofStandalone.query(`SELECT to_regnamespace('of_service') AS found`)).toEqual([{ found: null }]);
    // Of another program.
    await ofStandalone.query('DROP TABLE admission.schema_migration');
    expect(await migrateSchema(ofStandalone.url, schema)).toBe('The schema "of_service" was migrated: 001_a.sql.');
    await checkSchema(ofStandalone.url, schema);
  });

  it('is refused where nothing can be written, as on a standby', async () => {
    const [{ name }] = (await database.query('SELECT current_database() AS name')) as [{ name: string }];
    await database.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    expect(await refusal(checkSchema(database.url, { schema: 'x', directory }))).toMatch(/takes no writes: .* standby/);
    await database.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
  });

  it('fails with one line when its connection breaks, and does not end the process', async () => {
    const breaking = await mkdtemp(join(tmpdir(), 'breaking-'));
    await writeFile(join(breaking, '001_a.sql'), 'SELECT pg_terminate_backend(pg_backend_pid());');
    const work = migrateSchema(database.url, { schema: 'broken', directory: breaking });
    expect(await refusal(work)).not.toMatch(/\n/);
    await rm(breaking, { recursive: true });
  });

  it('names a database that does not exist', async () => {
    const url = withDatabase(database.url, 'not_there');
    expect(await refusal(checkSchema(url, { schema: 'x', directory }))).toMatch(
      /not_there has no such database: create it, or correct DATABASE_URL\.$/,
    );
  });
});
