import { useTestDatabase } from '@tollgate/testing';
import { ConsoleDataSource, openConsoleDatabase } from '../database';
import { OvertakenCalls } from './overtaken-calls';

let database: ConsoleDataSource;
let calls: OvertakenCalls;
afterAll(() => database.destroy());
const test = useTestDatabase();
beforeAll(async () => {
  database = await openConsoleDatabase(test.url);
  calls = new OvertakenCalls(database);
  await test.query(
    `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ('ada', 'Ada', 'ada@example.com', true)`,
  );
});

it('of two changes of a password that began together, one is made', async () => {
  const since = await calls.now();
  const both = await Promise.allSettled([calls.beforeChange('ada', since), calls.beforeChange('ada', since)]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(both.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'invalid_credentials' } });
  await calls.beforeChange('ada', await calls.now());
});

it('a change ends what began before it, and not the call that makes it or later ones', async () => {
  const sessions = async () => (await test.query('SELECT id FROM console."session" ORDER BY id')).map(({ id }) => id);
  for (const id of ['late', 'own'])
    await test.query(
      `INSERT INTO console."session" (id, token, "userId", "expiresAt", "updatedAt")
       VALUES ($1, $1, 'ada', now() + interval '1 day', now())`,
      [id],
    );
  const since = await calls.now();
  await calls.beforeChange('ada', since);
  expect(await calls.end('ada', { since, sessionId: 'own', changes: true })).toBe(false);
  await calls.afterChange('ada');
  expect(await calls.end('ada', { since, sessionId: 'late', changes: false })).toBe(true);
  expect(await sessions()).toEqual(['own']);
  expect(await calls.end('ada', { since: await calls.now(), sessionId: 'own', changes: false })).toBe(false);
  expect(await sessions()).toEqual(['own']);
});
