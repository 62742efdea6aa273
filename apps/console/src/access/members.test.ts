import { useTestDatabase } from '@tollgate/testing';
import { ConsoleDatabase } from '../database';
import type { Changes } from './changes';
import { Members } from './members';

let database: ConsoleDatabase;
let members: Members;
afterAll(() => database.onApplicationShutdown());
const test = useTestDatabase();
beforeAll(async () => {
  database = await ConsoleDatabase.open(test.url);
  members = new Members(database, {} as Changes);
  await test.query(
    `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ('u', 'U', 'u@example.com', true)`,
  );
});

it.each(['operator', 'provider_operator'])('there is an operator as soon as %s has one', async (table) => {
  expect(await members.hasOperator()).toBe(false);
  await test.query(`INSERT INTO console.${table} (user_id) VALUES ('u')`);
  expect(await members.hasOperator()).toBe(true);
  await test.query(`DELETE FROM console.${table}`);
});
