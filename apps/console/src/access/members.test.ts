import { newId } from '@tollgate/contracts';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { MembersController } from '../api/people/members.controller';
import { ConsoleDataSource, openConsoleDatabase } from '../database';
import type { Caller } from './allow';
import { type Changes, personAs } from './changes';
import { Invitations } from './invitations';
import { Members } from './members';
import type { TenantRole } from './roles';

let database: ConsoleDataSource;
let members: Members;
afterAll(() => database.destroy());
const test = useTestDatabase();
beforeAll(async () => {
  database = await openConsoleDatabase(test.url);
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

it('lists members in pages, the oldest first, also when a member leaves between them', async () => {
  const tenantId = newId('ten');
  // Two of the same time.
  const since = { last: 3, b: 2, a: 2, first: 1 };
  for (const [id, micros] of Object.entries(since)) {
    await test.query(
      `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ($1, $1, $1 || '@page.example', true)`,
      [id],
    );
    await test.query(
      `INSERT INTO console.membership (user_id, tenant_id, role, created_at)
       VALUES ($1, $2, 'viewer', '2026-01-01Z'::timestamptz + $3 * interval '1 microsecond')`,
      [id, tenantId, micros],
    );
  }
  const first = await members.list(tenantId, { limit: 2 });
  expect(first.data.map(({ userId }) => userId)).toEqual(['first', 'a']);
  await test.query(`DELETE FROM console.membership WHERE user_id = 'a'`);
  const rest = await members.list(tenantId, { limit: 2, after: first.nextCursor! });
  expect(rest).toMatchObject({ data: [{ userId: 'b' }, { userId: 'last' }], nextCursor: null });
  expect((await members.idsAmong(tenantId, ['b', 'first@page.example', 'a', 'u'])).sort()).toEqual(['b', 'first']);
});

describe('a person whose role is taken while their own request is under way', () => {
  const tenantId = newId('ten');
  const rolesOf = () =>
    test.query<{ user_id: string; role: string }>(
      'SELECT user_id, role FROM console.membership WHERE tenant_id = $1 ORDER BY 1',
      [tenantId],
    );
  beforeEach(async () => {
    await test.query('DELETE FROM console.membership');
    await test.query('DELETE FROM console.invitation');
    await test.query(
      `INSERT INTO console.invitation (id, token_hash, tenant_id, role, expires_at)
       VALUES ('inv', 'hash', $1, 'viewer', now() + interval '1 day')`,
      [tenantId],
    );
    for (const id of ['ada', 'eve', 'zoe']) {
      await test.query(
        `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ($1, $1, $1 || '@example.com', true)
         ON CONFLICT DO NOTHING`,
        [id],
      );
      await test.query(`INSERT INTO console.membership (user_id, tenant_id, role) VALUES ($1, $2, 'owner')`, [
        ...[id, tenantId],
      ]);
    }
  });

  /** A call of a person whom the guard has seen as an owner. */
  function calls(by: string, changes: Changes) {
    const none = {} as never;
    const invitations = new Invitations(database, none, changes);
    const members = new Members(database, changes);
    const controller = new MembersController(members, invitations, none, none);
    const caller = { userId: by, isOperator: false, role: 'owner' } as Caller;
    const author = personAs(by, `${by}@example.com`, { address: null, requestId: null });
    return {
      remove: (userId: string) => controller.remove(tenantId, userId, caller, author),
      withdraw: () => controller.withdraw(tenantId, 'inv', caller, author),
      setRole: (userId: string, role: TenantRole) => {
        const request = {
          headers: { 'content-type': 'application/json' },
          body: Buffer.from(JSON.stringify({ role })),
        };
        return controller.setRole(tenantId, userId, caller, author, request as never);
      },
    };
  }

  it.each([
    ['removes the one who took it', (eve: ReturnType<typeof calls>) => eve.remove('ada')],
    ['demotes the one who took it', (eve: ReturnType<typeof calls>) => eve.setRole('ada', 'viewer')],
    ['withdraws an invitation', (eve: ReturnType<typeof calls>) => eve.withdraw()],
  ])('no longer %s', async (_, act) => {
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    let asked = 0;
    const slow = { record: () => (asked++, opened) } as unknown as Changes;
    const removed = calls('ada', slow).remove('eve');
    await eventually(() => expect(asked).toBe(1));
    const own = act(calls('eve', { record: () => Promise.resolve() } as unknown as Changes));
    const outcome = expect(own).rejects.toMatchObject({ code: 'not_found' });
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await eventually(async () => expect(await test.query(waiting)).not.toEqual([]));
    open();
    await Promise.all([removed, outcome]);
    expect(await rolesOf()).toEqual(['ada', 'zoe'].map((id) => ({ user_id: id, role: 'owner' })));
    expect(await test.query('SELECT id FROM console.invitation')).toEqual([{ id: 'inv' }]);
  });
});
