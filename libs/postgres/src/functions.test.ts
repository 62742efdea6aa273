import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useTestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { checkMigrations, migrate, MigrationError } from './index';

const database = useTestDatabase();
const folders: string[] = [];
let schemas = 0;

/** A schema with a folder of numbered files and one of functions, as a version of Tollgate has them. */
class Version {
  readonly schema = `version_${++schemas}`;
  private constructor(
    private readonly folder: string,
    private readonly url: string,
  ) {}

  static async of(url: string, files: Record<string, string>): Promise<Version> {
    const folder = await mkdtemp(join(tmpdir(), 'versions-'));
    folders.push(folder);
    const version = new Version(folder, url);
    for (const part of ['migrations', 'functions']) await mkdir(join(folder, part));
    await version.write(files);
    return version;
  }

  get options() {
    return {
      url: this.url,
      schema: this.schema,
      directory: join(this.folder, 'migrations'),
      functions: join(this.folder, 'functions'),
    };
  }

  path = (name: string) => join(this.folder, name);
  migrate = () => migrate(this.options);

  /** Writes these files, and the line of versions.txt that the error message asks for. */
  async write(files: Record<string, string>): Promise<void> {
    for (const [name, sql] of Object.entries(files)) await writeFile(this.path(name), sql);
    const list = this.path('functions/versions.txt');
    await writeFile(list, await readFile(list, 'utf8').catch(() => ''));
    const asked = await checkMigrations(this.options).catch((error: Error) => error.message);
    const [, line] = /has changed: add .* the line "([0-9a-f]{64}) /.exec(asked ?? '') ?? [];
    if (line) await writeFile(list, `${await readFile(list, 'utf8')}${line} another state\n`);
  }

  async answer(): Promise<string> {
    const [row] = await database.query<{ answer: string }>(`SELECT ${this.schema}.answer() AS answer`);
    return row!.answer;
  }

  functions = async () => {
    const rows = await database.query<{ name: string }>(
      `SELECT format('%s(%s)', proname, pg_get_function_identity_arguments(oid)) AS name
       FROM pg_proc WHERE pronamespace = '${this.schema}'::regnamespace ORDER BY 1`,
    );
    return rows.map(({ name }) => name);
  };
}

const answers = (text: string) =>
  `CREATE OR REPLACE FUNCTION answer() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN '${text}'; END $$;`;
const TABLE = { 'migrations/001_item.sql': 'CREATE TABLE item (id int PRIMARY KEY);' };
const KEEPS = {
  'functions/keep.sql':
    'CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;',
  'functions/triggers.sql': 'CREATE TRIGGER keep BEFORE DELETE ON item FOR EACH ROW EXECUTE FUNCTION keep();',
};

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

describe('functions', () => {
  it('are applied after the tables by one of all starting processes, and again when they changed', async () => {
    const version = await Version.of(database.url, { ...TABLE, 'functions/answer.sql': answers('one') });
    const results = await Promise.all([version.migrate(), version.migrate(), version.migrate()]);
    expect(results.flatMap(({ applied }) => applied)).toEqual(['001_item.sql', 'functions']);
    await checkMigrations(version.options);
    expect(await version.answer()).toBe('one');

    await version.write({ 'functions/answer.sql': answers('two') });
    await expect(checkMigrations(version.options)).rejects.toThrow(/functions of an older version .* --migrate/);
    expect((await Promise.all([version.migrate(), version.migrate()])).flatMap(({ applied }) => applied)).toEqual([
      'functions',
    ]);
    expect(await version.answer()).toBe('two');
    expect(await version.migrate()).toEqual({ applied: [] });
  });

  it('are replaced during calls, none of which fails', async () => {
    const version = await Version.of(database.url, { ...TABLE, 'functions/answer.sql': answers('0') });
    await version.migrate();
    let done = false;
    const seen: number[] = [];
    const caller = new Client({ connectionString: database.url });
    await caller.connect();
    const calls = (async () => {
      const call = { name: 'call', text: `SELECT ${version.schema}.answer() AS answer` };
      while (!done) seen.push(Number((await caller.query<{ answer: string }>(call)).rows[0]!.answer));
    })();
    for (let n = 1; n <= 10; n++) {
      await version.write({ 'functions/answer.sql': answers(String(n)) });
      await version.migrate();
    }
    done = true;
    await calls;
    await caller.end();
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(await version.answer()).toBe('10');
  });

  it('keep their owner and rights', async () => {
    const version = await Version.of(database.url, { ...TABLE, 'functions/answer.sql': answers('one') });
    await version.migrate();
    const role = `asks_${version.schema}`;
    await database.query(`CREATE ROLE ${role} NOLOGIN`);
    try {
      await database.query(`ALTER SCHEMA ${version.schema} OWNER TO ${role}`);
      await database.query(`REVOKE ALL ON FUNCTION ${version.schema}.answer() FROM PUBLIC`);
      await version.write({ 'functions/answer.sql': answers('two') });
      await version.migrate();
      const [found] = await database.query<{ acl: string; owner: string }>(
        `SELECT proacl::text AS acl, proowner::regrole::text AS owner
         FROM pg_proc WHERE oid = '${version.schema}.answer()'::regprocedure`,
      );
      // They belong to the schema's owner, whoever migrates, and no one else may call them.
      expect(found).toEqual({ acl: `{${role}=X/${role}}`, owner: role });
    } finally {
      await database.query(`DROP SCHEMA ${version.schema} CASCADE`);
      await database.query(`DROP ROLE ${role}`);
    }
  });

  it('are dropped when no file defines them any more, or only with other parameters', async () => {
    const version = await Version.of(database.url, {
      ...TABLE,
      'functions/answer.sql': answers('one'),
      'functions/other.sql': `CREATE OR REPLACE FUNCTION other(n int) RETURNS int LANGUAGE sql AS 'SELECT n';`,
    });
    await version.migrate();
    expect(await version.functions()).toEqual(['answer()', 'other(n integer)']);
    await version.write({
      'functions/answer.sql': '-- Nothing.',
      'functions/other.sql': `CREATE OR REPLACE FUNCTION other(n bigint) RETURNS bigint LANGUAGE sql AS 'SELECT n';`,
    });
    await version.migrate();
    expect(await version.functions()).toEqual(['other(n bigint)']);
  });

  it('leave everything unchanged if one of them fails, including numbered files and rights', async () => {
    const version = await Version.of(database.url, { ...TABLE, 'functions/answer.sql': answers('one') });
    await version.migrate();
    await version.write({
      'migrations/002_label.sql': 'ALTER TABLE item ADD COLUMN label text;',
      'functions/answer.sql': `${answers('two')} SELECT 1/0;`,
    });
    await expect(version.migrate()).rejects.toThrow(/functions.*answer\.sql failed: division by zero/i);
    expect(await version.answer()).toBe('one');
    await expect(database.query(`SELECT label FROM ${version.schema}.item`)).rejects.toThrow(/does not exist/);
  });

  it('are not replaced by those of an older version, which does not start', async () => {
    const files = { ...TABLE, 'functions/answer.sql': answers('one') };
    const version = await Version.of(database.url, files);
    await version.migrate();
    const olderList = await readFile(version.path('functions/versions.txt'), 'utf8');
    await version.write({ 'functions/answer.sql': answers('two') });
    await version.migrate();

    await writeFile(version.path('functions/versions.txt'), olderList);
    await writeFile(version.path('functions/answer.sql'), answers('one'));
    for (const start of [version.migrate(), checkMigrations(version.options)])
      await expect(start).rejects.toThrow(/functions .* are those of a newer version of Tollgate/);
    expect(await version.answer()).toBe('two');
  });

  it('are refused after a change without a line in versions.txt, with that line', async () => {
    const version = await Version.of(database.url, { ...TABLE, 'functions/answer.sql': answers('one') });
    await writeFile(version.path('functions/answer.sql'), answers('two'));
    await expect(version.migrate()).rejects.toThrow(MigrationError);
    await expect(version.migrate()).rejects.toThrow(/add to the end of its versions\.txt the line "[0-9a-f]{64} </);
  });
});

describe('triggers', () => {
  const triggers = async ({ schema }: Version) => {
    const rows = await database.query<{ line: string }>(
      `SELECT tgname || ' ' || t.oid AS line FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
       WHERE relnamespace = '${schema}'::regnamespace ORDER BY 1`,
    );
    return rows.map(({ line }) => line);
  };

  it('are those of triggers.sql, and stay untouched while only functions change', async () => {
    const version = await Version.of(database.url, { ...TABLE, ...KEEPS });
    await version.migrate();
    const before = await triggers(version);
    expect(before).toEqual([expect.stringMatching(/^keep /)]);
    await version.write({ 'functions/answer.sql': answers('one') });
    await version.migrate();
    expect(await triggers(version)).toEqual(before);

    await version.write({
      'functions/keep.sql': KEEPS['functions/keep.sql'].replace('keep()', 'hold_on()'),
      'functions/triggers.sql': 'CREATE TRIGGER hold_on BEFORE DELETE ON item FOR EACH ROW EXECUTE FUNCTION hold_on();',
    });
    await version.migrate();
    expect(await triggers(version)).toEqual([expect.stringMatching(/^hold_on /)]);
    expect(await version.functions()).toEqual(['answer()', 'hold_on()']);
  });

  it('do not wait forever for a locked table: the migration gives up and can be repeated', async () => {
    const version = await Version.of(database.url, { ...TABLE, 'functions/answer.sql': answers('one') });
    await version.migrate();
    await version.write({ ...KEEPS, 'functions/answer.sql': answers('two') });
    const holder = new Client({ connectionString: database.url });
    await holder.connect();
    await holder.query(`BEGIN; LOCK TABLE ${version.schema}.item IN ROW EXCLUSIVE MODE`);
    await expect(migrate({ ...version.options, lockTimeoutMs: 10 })).rejects.toThrow(/lock timeout/);
    expect(await version.answer()).toBe('one');
    await holder.query('COMMIT');
    await holder.end();
    await version.migrate();
    expect(await version.answer()).toBe('two');
  });
});

it('a numbered file that lost its functions is accepted only where its former text was applied', async () => {
  const former = `CREATE TABLE item (id int PRIMARY KEY); ${answers('former')}`;
  const version = await Version.of(database.url, { 'migrations/001_item.sql': former });
  const { url, schema, directory } = version.options;
  await migrate({ url, schema, directory });
  const checksum = createHash('sha256').update(former).digest('hex');
  const now = (was: string) => `-- formerly sha256 ${was}\nCREATE TABLE item (id int PRIMARY KEY);\n`;
  await version.write({ 'migrations/001_item.sql': now('0'.repeat(64)), 'functions/answer.sql': answers('now') });
  await expect(version.migrate()).rejects.toThrow(/changed after it was applied/);
  await version.write({ 'migrations/001_item.sql': now(checksum) });
  expect(await version.migrate()).toEqual({ applied: ['functions'] });
  expect(await version.answer()).toBe('now');
  // Rewritten again: it names both former texts.
  await version.write({ 'migrations/001_item.sql': `-- formerly sha256 ${'1'.repeat(64)}\n${now(checksum)}` });
  expect(await version.migrate()).toEqual({ applied: [] });
});
