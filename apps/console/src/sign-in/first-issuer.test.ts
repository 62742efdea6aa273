import { useTestDatabase } from '@tollgate/testing';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { MIGRATIONS } from '../database';

const MIGRATION = '007_first_issuer.sql';
let client: Client;
// Before the database is dropped.
afterAll(() => client.end());
const database = useTestDatabase();
beforeAll(async () => {
  client = new Client({ connectionString: database.url });
  await client.connect();
});

const apply = (file: string) => client.query(readFileSync(join(MIGRATIONS.directory, file), 'utf8'));
const encoded = (json: unknown) => Buffer.from(JSON.stringify(json)).toString('base64url');
/** Of every length, so that its base64 has every padding. */
const tokenOf = (iss: unknown, filling = '') => `${encoded({})}.${encoded({ iss, filling })}.signature`;

/** What the migration makes of these links of a former version, the one used last first. */
async function migrated(
  idTokens: readonly (string | null)[],
  prefix = 'sub',
): Promise<{ first: string | undefined; ids: string[] }> {
  await client.query('DROP SCHEMA IF EXISTS former CASCADE; CREATE SCHEMA former; SET search_path TO former');
  const numbered = readdirSync(MIGRATIONS.directory).filter((name) => /^\d/.test(name));
  for (const file of numbered.filter((name) => name < MIGRATION).sort()) await apply(file);
  await client.query(`INSERT INTO "user" (id, name, email, "emailVerified") VALUES ('u', 'U', 'u@example.com', true)`);
  for (const [index, idToken] of idTokens.entries())
    await client.query(
      `INSERT INTO "account" ("id", "accountId", "providerId", "userId", "idToken", "accessToken", "updatedAt")
       VALUES ($1, $1, 'oidc', 'u', $2, 'token', now() - $3 * interval '1 day')`,
      [`${prefix}${index}`, idToken, index],
    );
  await client.query(
    `INSERT INTO "account" ("id", "accountId", "providerId", "userId", "password", "updatedAt")
     VALUES ('p', 'u', 'credential', 'u', 'hash', now())`,
  );
  await apply(MIGRATION);
  const { rows } = await client.query<{ accountId: string }>(
    `SELECT "accountId" FROM "account" WHERE "providerId" = 'oidc' ORDER BY "id"`,
  );
  const withTokens = await client.query('SELECT FROM "account" WHERE num_nonnulls("idToken", "accessToken") > 0');
  expect(withTokens.rowCount).toBe(0);
  expect((await client.query('SELECT FROM "account" WHERE "password" IS NOT NULL')).rowCount).toBe(1);
  const { rows: firsts } = await client.query<{ issuer: string }>('SELECT issuer FROM first_issuer');
  return { first: firsts[0]?.issuer, ids: rows.map(({ accountId }) => accountId) };
}

it('binds the links of a former version to the issuers that their tokens name, and deletes the tokens', async () => {
  const [now, before] = ['https://login.example.com/realms/ä', 'https://old.example.com'];
  const tokens = [tokenOf(`${now}/`), tokenOf(now, 'x'), tokenOf(before, 'xx'), tokenOf(before), null];
  expect(await migrated(tokens)).toEqual({
    first: now,
    ids: ['sub0', 'sub1', `${before} sub2`, `${before} sub3`, 'sub4'],
  });
});

it('leaves links alone whose tokens cannot be read, and without any the first issuer stays open', async () => {
  const unreadable = [
    '',
    'x',
    'a.b.c',
    'a.####.c',
    `a.${encoded(7)}.c`,
    `a.${encoded({ iss: '\u0000' })}.c`,
    'a.gICA.c',
  ];
  expect(await migrated(unreadable)).toEqual({ first: undefined, ids: unreadable.map((_, index) => `sub${index}`) });
  expect(await migrated([])).toEqual({ first: undefined, ids: [] });
});

it('names the issuer of a subject with a space, which could otherwise be taken for an issuer and a subject', async () => {
  const issuer = 'https://login.example.com';
  expect(await migrated([tokenOf(issuer)], 'uid=ada, ou=')).toEqual({
    first: issuer,
    ids: [`${issuer} uid=ada, ou=0`],
  });
});
