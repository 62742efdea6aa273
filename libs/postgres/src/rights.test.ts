import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useTestDatabase, withDatabase } from '@tollgate/testing';
import { randomBytes } from 'node:crypto';
import { migrate, openServiceDataSource, serviceRole } from './index';

const database = useTestDatabase();
// Roles belong to the server.
const schema = `shop_${randomBytes(4).toString('hex')}`;
const role = serviceRole(schema);
const owner = `owner_of_${schema}`;
let directory: string;
const ofOwner = () => withDatabase(database.url, `db_${schema}`).replace(/^(\w+:\/\/)[^@/]*@?/, `$1${owner}:secret@`);
const rights = (sql: string) => writeFile(join(directory, 'rights.sql'), sql);
const grants = (more: string) =>
  `REVOKE ALL ON ALL TABLES IN SCHEMA ${schema} FROM ${role}; ` +
  `GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT ${more} ON item TO ${role};`;

/** Runs a statement as the service. */
async function may(sql: string): Promise<string> {
  const dataSource = await openServiceDataSource({ url: ofOwner(), schema, poolSize: 1 });
  try {
    const [{ user }] = await dataSource.query('SELECT current_user AS user');
    return await dataSource.query(sql).then(
      () => `${user}: done`,
      (error: Error) => `${user}: ${error.message}`,
    );
  } finally {
    await dataSource.destroy();
  }
}

describe('the rights of a service', () => {
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'migrations-'));
    await writeFile(join(directory, '001_a.sql'), 'CREATE TABLE item (id int);');
    await rights(grants('SELECT'));
    await database.query(`CREATE ROLE ${owner} LOGIN PASSWORD 'secret'`);
    await database.query(`CREATE DATABASE db_${schema} OWNER ${owner}`);
  });
  afterAll(async () => {
    await database.query(`DROP DATABASE db_${schema} WITH (FORCE)`);
    await database.query(`DROP ROLE IF EXISTS ${role}`);
    await database.query(`DROP ROLE ${owner}`);
    await rm(directory, { recursive: true });
  });

  it('are granted to its role as soon as it exists, and are those of the file', async () => {
    const run = () => migrate({ url: ofOwner(), schema, directory });
    // The user may not create roles: everything runs as one user, as in the beginning.
    expect((await run()).applied).toEqual(['001_a.sql']);
    expect(await may('INSERT INTO item VALUES (1)')).toBe(`${owner}: done`);

    await database.query(`CREATE ROLE ${role} NOLOGIN`);
    await database.query(`GRANT ${role} TO ${owner}`);
    expect((await run()).applied).toEqual([]);
    expect(await may('SELECT FROM item')).toBe(`${role}: done`);
    expect(await may('INSERT INTO item VALUES (1)')).toBe(`${role}: permission denied for table item`);

    await rights(grants('SELECT, INSERT'));
    await Promise.all([run(), run(), run()]);
    expect(await may('INSERT INTO item VALUES (1)')).toBe(`${role}: done`);
    await rights(grants('SELECT'));
    await run();
    expect(await may('INSERT INTO item VALUES (1)')).toBe(`${role}: permission denied for table item`);
  });

  it('stay unchanged if the file fails', async () => {
    await rights(`${grants('SELECT, INSERT')} SELECT 1/0;`);
    await expect(migrate({ url: ofOwner(), schema, directory })).rejects.toThrow(/division by zero/);
    expect(await may('SELECT FROM item')).toBe(`${role}: done`);
    expect(await may('INSERT INTO item VALUES (1)')).toMatch(/permission denied/);
  });
});
