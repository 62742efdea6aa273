import { eventually, useTestDatabase } from '@tollgate/testing';
import { ConsoleDataSource, openConsoleDatabase } from '../database';
import { ExpiredRows } from './expired-rows';

let database: ConsoleDataSource;
afterAll(() => database.destroy());
const test = useTestDatabase();
beforeAll(async () => {
  database = await openConsoleDatabase(test.url);
});

/** A row of each table, with a text that names it. It expires after `minutes`; its try was as long ago. */
async function add(name: string, minutes: number): Promise<void> {
  const at = `now() + ${minutes} * interval '1 minute'`;
  await test.query(`INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ($1, $1, $1, true)`, [name]);
  for (const sql of [
    `console.invitation (id, token_hash, email, tenant_id, role, expires_at) VALUES ($1, $1, $1, 't', 'viewer', ${at})`,
    `console.recovery (token_hash, user_id, expires_at) VALUES ($1, $1, ${at})`,
    `console."session" (id, token, "ipAddress", "userId", "expiresAt", "updatedAt") VALUES ($1, $1, $1, $1, ${at}, now())`,
    `console."verification" (id, identifier, value, "expiresAt") VALUES ($1, $1, $1, ${at})`,
    `console."rateLimit" (id, key, count, "lastRequest") VALUES ($1, $1, 1, extract(epoch FROM ${at}) * 1000)`,
  ])
    await test.query(`INSERT INTO ${sql}`, [name]);
}
const TABLES = ['invitation', 'recovery', '"session"', '"verification"', '"rateLimit"'];
async function placesOf(name: string): Promise<string[]> {
  const found: string[] = [];
  for (const table of TABLES) {
    const sql = `SELECT 1 FROM console.${table} t WHERE strpos(t::text, $1) > 0`;
    if ((await test.query(sql, [name])).length > 0) found.push(table);
  }
  return found;
}

it('expired rows are deleted even if no such row is created again, and the others stay', async () => {
  await add('expired@example.com', -11);
  await add('current@example.com', 11);
  expect(await placesOf('expired@')).toEqual(TABLES);
  const expired = new ExpiredRows(database);
  expired.onApplicationBootstrap();
  await eventually(async () => expect(await placesOf('expired@')).toEqual([]));
  await expired.beforeApplicationShutdown();
  expect(await placesOf('current@')).toEqual(TABLES);
});
