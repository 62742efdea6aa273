import { useTestDatabase } from '@tollgate/testing';
import type { Caller } from '../../access/allow';
import { ConsoleDataSource, openConsoleDatabase } from '../../database';
import { AccountController } from './account.controller';
import { OwnSignIns } from './own-sign-ins';

let database: ConsoleDataSource;
afterAll(() => database.destroy());
const test = useTestDatabase();
beforeAll(async () => {
  database = await openConsoleDatabase(test.url);
});

it('lists the sessions of the caller in pages, the newest first, also when a session ends between them', async () => {
  await test.query(
    `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ('u', 'U', 'u@example.com', true)`,
  );
  // Two of the same time.
  for (const [id, at] of [
    ['oldest', '00:00:00.000001'],
    ['a', '00:00:00.000002'],
    ['b', '00:00:00.000002'],
    ['newest', '00:00:00.000003'],
  ])
    await test.query(
      `INSERT INTO console."session" ("id", "token", "userId", "createdAt", "updatedAt", "expiresAt")
       VALUES ($1, $1, 'u', $2::timestamptz, now(), now() + interval '1 day')`,
      [id, `2026-01-01 ${at}Z`],
    );
  const none = {} as never;
  const controller = new AccountController(new OwnSignIns(database, none), none, none);
  const page = (query: object) => controller.sessions({ userId: 'u', sessionId: 'oldest' } as Caller, query);
  const first = await page({ limit: '2' });
  expect(first.data.map(({ id }) => id)).toEqual(['newest', 'b']);
  await test.query(`DELETE FROM console."session" WHERE "id" = 'b'`);
  const last = await page({ limit: '2', after: first.nextCursor });
  expect(last).toMatchObject({ data: [{ id: 'a' }, { id: 'oldest', isCurrent: true }], nextCursor: null });
  expect((await page({})).data).toHaveLength(3);
  await expect(page({ after: 'x' })).rejects.toMatchObject({ code: 'invalid_parameter' });
});
