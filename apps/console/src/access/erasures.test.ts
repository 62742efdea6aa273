import {
  type Author,
  type ReplyOf,
  RequestError,
  type RequestOf,
  type Subject,
  UnavailableError,
} from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { ConsoleDataSource, openConsoleDatabase, POOL_SIZE } from '../database';
import { Erasures } from './erasures';
import { People } from './people';

let database: ConsoleDataSource;
let people: People;
let handlers: Map<string, (request: never) => Promise<unknown>>;
let erasures: Erasures;
afterAll(() => database.destroy());
const test = useTestDatabase();
beforeAll(async () => {
  database = await openConsoleDatabase(test.url);
});
beforeEach(() => {
  handlers = new Map();
  const request = async (subject: Subject, asked: unknown) => {
    const handler = handlers.get(subject);
    if (!handler) throw new UnavailableError(subject);
    return handler(asked as never);
  };
  const services = new ServiceClient({ request } as unknown as Messages);
  erasures = new Erasures(database, services);
  people = new People(database, services, erasures);
});

const authorOf = (userId: string): Author => ({
  ...{ kind: 'person', id: userId, name: `${userId}@example.com`, address: '10.1.1.1', requestId: 'r' },
});
/** With a session. */
async function join(userId: string): Promise<void> {
  await test.query(`INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ($1, 'N', $2, true)`, [
    ...[userId, `${userId}@example.com`],
  ]);
  await test.query(
    `INSERT INTO console."session" (id, token, "userId", "expiresAt", "updatedAt") VALUES ($1, $1, $1, now(), now())`,
    [userId],
  );
}
const own = (userId: string, tenantId: string) =>
  test.query(`INSERT INTO console.membership (user_id, tenant_id, role) VALUES ($1, $2, 'owner')`, [userId, tenantId]);
const accounts = () => test.query('SELECT id FROM console."user" UNION SELECT id FROM console."session"');
const pending = () =>
  test.query<{ id: string; name: string | null }>(
    `SELECT user_id AS id, author ->> 'name' AS name FROM console.erasure ORDER BY user_id`,
  );
const PEOPLE = Array.from({ length: POOL_SIZE + 1 }, (_, n) => `person-${n}`);

function handle<S extends Subject>(subject: S, handler: (request: RequestOf<S>) => Promise<ReplyOf<S>>): void {
  handlers.set(subject, handler);
}

const code = (error: { code: string }) => error.code;

/** A promise that the test ends. */
function gate(): { open: () => void; opened: Promise<void> } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

/** Answers erasures, and lists whom. `until`: no sooner. */
function answer(until?: Promise<unknown>): { auth: unknown[]; billing: unknown[] } {
  const asked = { auth: [] as unknown[], billing: [] as unknown[] };
  for (const service of ['auth', 'billing'] as const)
    handlers.set(`${service}.people.erase`, async (request) => {
      asked[service].push(request);
      await until;
      return { erased: true };
    });
  return asked;
}

it('an erasure that a crash or an outage interrupts is completed later, also by another console', async () => {
  await join('anna');
  await join('boss');
  await people.erase(authorOf('boss'), 'anna');
  await people.erase(authorOf('boss'), 'boss');
  expect(await accounts()).toEqual([]);
  // A pending row does not bring back the name of an operator who is gone, too.
  expect(await pending()).toEqual(['anna', 'boss'].map((id) => ({ id, name: null })));

  const asked = answer();
  await test.query('UPDATE console.erasure SET due_at = now()');
  erasures.onApplicationBootstrap();
  await eventually(async () => expect(await pending()).toEqual([]));
  await erasures.beforeApplicationShutdown();
  const by = { ...authorOf('boss'), name: null, address: null };
  const erased = ['anna', 'boss'].map((userId) => ({ userId, email: `${userId}@example.com`, by }));
  expect(asked.auth).toHaveLength(2);
  expect(asked.auth).toEqual(expect.arrayContaining(erased));
  expect(asked.billing).toEqual(asked.auth.map((one) => ({ userId: (one as { userId: string }).userId })));
});

it('the account is gone before the services are asked, and they are asked once more', async () => {
  const answers = gate();
  const asked = answer(answers.opened);
  for (const userId of PEOPLE) await join(userId);
  const erased = PEOPLE.map((userId) => people.erase(authorOf(userId), userId));
  // More of them than there are connections: none waits for a service with one.
  await eventually(async () => expect(asked.auth).toHaveLength(PEOPLE.length));
  expect(await accounts()).toEqual([]);
  answers.open();
  await Promise.all(erased);
  expect((await pending()).map(({ id }) => id)).toEqual(PEOPLE);
  await test.query('DELETE FROM console.erasure');
});

it('no connection waits for the state of a tenant, and a tenant in use keeps its owner', async () => {
  const answers = gate();
  let asked = 0;
  handle('auth.tenants.get', async ({ tenantId }) => {
    asked++;
    await answers.opened;
    if (tenantId === 'unknown') throw new RequestError('not_found', 'tenant');
    return { name: 'Acme', status: tenantId === 'closed' ? 'closed' : 'active' } as ReplyOf<'auth.tenants.get'>;
  });
  answer();
  const tenants = ['closed', 'unknown', ...PEOPLE.slice(2)];
  for (const [i, userId] of PEOPLE.entries()) {
    await join(userId);
    await own(userId, tenants[i]!);
  }
  const erased = PEOPLE.map((userId) => people.erase(authorOf(userId), userId).then(() => 'erased', code));
  await eventually(async () => expect(asked).toBe(PEOPLE.length));
  answers.open();
  expect(await Promise.all(erased)).toEqual(['erased', 'erased', ...PEOPLE.slice(2).map(() => 'last_owner')]);
});

it('only operators wait for each other, and one of them stays', async () => {
  answer();
  for (const userId of ['member', 'grace', 'heidi']) await join(userId);
  await test.query(`INSERT INTO console.operator (user_id) VALUES ('grace'), ('heidi')`);
  await test.query('BEGIN');
  await test.query(`SELECT pg_advisory_xact_lock(hashtextextended('tollgate-console-operators', 0))`);
  const left = Promise.allSettled(['grace', 'heidi'].map((userId) => people.erase(authorOf(userId), userId)));
  await people.erase(authorOf('member'), 'member');
  await test.query('ROLLBACK');
  expect(
    (await left).map((one) => (one.status === 'fulfilled' ? 'erased' : code(one.reason as { code: string }))).sort(),
  ).toEqual(['erased', 'last_operator']);
});
