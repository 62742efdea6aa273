import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '@tollgate/contracts';
import { migrate, serviceRole } from '@tollgate/postgres';
import { OUTBOX_TABLE_SQL, useTestDatabase, withDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { MIGRATIONS, openBillingDatabase } from './database';

// Runs the migrations as users with fewer rights than a superuser, as on a managed server. Roles belong to the server,
// so each test uses its own names.
const database = useTestDatabase();
const LEDGER_ROLE = serviceRole(MIGRATIONS.schema);

it('the migrations create the outbox table that the relay expects', () => {
  expect(readFileSync(join(MIGRATIONS.directory, '001_ledger.sql'), 'utf8')).toContain(OUTBOX_TABLE_SQL);
});

describe('on a server whose user may not take on the ledger role', () => {
  const name = newId('msg');
  const owner = `owner_${name}`;
  const url = () => withDatabase(database.url, `db_${name}`).replace(/^(\w+:\/\/)[^@/]*@?/, `$1${owner}:secret@`);

  beforeAll(async () => {
    await database.query(`CREATE ROLE ${owner} LOGIN PASSWORD 'secret'`);
    await database.query(`CREATE DATABASE db_${name} OWNER ${owner}`);
  });
  afterAll(async () => {
    await database.query(`DROP DATABASE db_${name} WITH (FORCE)`);
    await database.query(`DROP ROLE ${owner}`);
  });

  it('billing migrates, even in several processes at once, and triggers make the ledger append-only', async () => {
    await Promise.all(Array.from({ length: 3 }, () => migrate({ url: url(), ...MIGRATIONS })));
    const dataSource = await openBillingDatabase(url());
    try {
      expect(await dataSource.query('SELECT current_user AS role')).toEqual([{ role: owner }]);
      await dataSource.query(`INSERT INTO rejected_charge (digest, reason, data) VALUES (sha256('x'), 'test', '{}')`);
      await expect(dataSource.query('DELETE FROM rejected_charge')).rejects.toThrow(/is append-only/);
      await expect(dataSource.query('TRUNCATE rejected_charge')).rejects.toThrow(/is append-only/);
    } finally {
      await dataSource.destroy();
    }
  });

  it('billing takes on the role once an administrator has granted it', async () => {
    await database.query(`GRANT ${LEDGER_ROLE} TO ${owner}`);
    const dataSource = await openBillingDatabase(url());
    try {
      expect(await dataSource.query('SELECT current_user AS role')).toEqual([{ role: LEDGER_ROLE }]);
      await expect(dataSource.query('DELETE FROM rejected_charge')).rejects.toThrow(/permission denied/);
    } finally {
      await dataSource.destroy();
    }
  });
});

describe('where an owner migrates and the service signs in as a user of its own', () => {
  const service = `service_${newId('msg')}`;
  const url = () => database.url.replace(/^(\w+:\/\/)[^@/]*@?/, `$1${service}:secret@`);
  beforeAll(() => database.query(`CREATE ROLE ${service} LOGIN PASSWORD 'secret' IN ROLE ${LEDGER_ROLE}`));
  afterAll(() => database.query(`DROP ROLE ${service}`));

  it('does its work, and no SQL of its own regains the right to change the journal', async () => {
    const dataSource = await openBillingDatabase(url());
    try {
      const tenantId = newId('ten');
      await dataSource.query('INSERT INTO tenant_books (tenant_id) VALUES ($1)', [tenantId]);
      await dataSource.query(`INSERT INTO rejected_charge (digest, reason, data) VALUES (sha256('y'), 'test', '{}')`);
      for (const role of [LEDGER_ROLE, service]) {
        await dataSource.query(`SET ROLE ${role}`);
        for (const table of ['charge', 'journal_entry', 'posting', 'coverage', 'invoice', 'invoice_void']) {
          await expect(dataSource.query(`DELETE FROM billing.${table}`)).rejects.toThrow(/permission denied/);
          await expect(dataSource.query(`ALTER TABLE billing.${table} DISABLE TRIGGER ALL`)).rejects.toThrow(
            /must be owner/,
          );
        }
      }
      await expect(dataSource.query('SET session_replication_role = replica')).rejects.toThrow(/permission denied/);
      await expect(dataSource.query('RESET ROLE; SET ROLE postgres')).rejects.toThrow(
        /permission denied|does not exist/,
      );
    } finally {
      await dataSource.destroy();
    }
  });
});

describe('the role itself', () => {
  it('can be created and taken on by a user who may create roles but is no superuser', async () => {
    const maker = `maker_${newId('msg')}`;
    await database.query(`CREATE ROLE ${maker} LOGIN CREATEROLE PASSWORD 'secret'`);
    const client = new Client({ connectionString: database.url.replace(/^(\w+:\/\/)[^@/]*@?/, `$1${maker}:secret@`) });
    await client.connect();
    try {
      // The statements of migration 003, for a role that does not exist yet.
      await client.query(`CREATE ROLE ${maker}_ledger NOLOGIN`);
      await expect(client.query(`SET ROLE ${maker}_ledger`)).rejects.toThrow(/permission denied/);
      await client.query(`GRANT ${maker}_ledger TO ${maker}`);
      await client.query(`SET ROLE ${maker}_ledger`);
    } finally {
      await client.end();
      await database.query(`DROP ROLE ${maker}_ledger`);
      await database.query(`DROP ROLE ${maker}`);
    }
  });
});
