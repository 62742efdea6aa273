import { mintInvitationSecret, newId } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { ConsoleDataSource, openConsoleDatabase } from '../database';
import type { SignIn } from '../sign-in/sign-in';
import { type Change, type Changes, personAs } from './changes';
import { Invitations, MAX_OPEN_INVITATIONS } from './invitations';
import { Members } from './members';

let database: ConsoleDataSource;
let invitations: Invitations;
let members: Members;
let hashed: string[];
let recorded: Change[];
afterAll(() => database.destroy());
const test = useTestDatabase();
beforeAll(async () => {
  database = await openConsoleDatabase(test.url);
});
beforeEach(() => {
  hashed = [];
  const hash = (password: string) => Promise.resolve(String(hashed.push(password)));
  const signIn = { origin: 'https://console.example.com', auth: { $context: { password: { hash } } } };
  recorded = [];
  const record = (_: unknown, change: Change) => Promise.resolve(void recorded.push(change));
  const changes = { record } as unknown as Changes;
  invitations = new Invitations(database, signIn as unknown as SignIn, changes);
  members = new Members(database, changes);
});

const FROM = { address: '10.1.1.1', requestId: 'r' };
const accept = (secret: string, email: string) =>
  invitations.acceptAsNew({ name: 'Ada', email, password: 'a long password' }, secret, FROM);

it('the slow work of hashing a password is for holders of a link that works', async () => {
  await expect(accept('x'.repeat(43), 'ada@example.com')).rejects.toMatchObject({ code: 'invitation_invalid' });
  expect(hashed).toEqual([]);
  const { secret, hash } = mintInvitationSecret();
  const operator = { email: null, operator: true, tenantId: null, role: null };
  await invitations.store({ id: 'inv', hash }, operator, { invitedBy: null, lifetimeMs: 60_000 });
  expect(await accept(secret, 'Ada@example.com')).toMatchObject({ operator: true });
  await expect(accept(secret, 'eve@example.com')).rejects.toMatchObject({ code: 'invitation_invalid' });
  expect(hashed).toEqual(['a long password']);
});

it('a tenant has a bounded number of open invitations, also if the last ones are made at the same time', async () => {
  const [tenantId, other] = [newId('ten'), newId('ten')];
  const owner = personAs('busy', 'busy@example.com', FROM);
  await test.query(
    `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ('busy', 'B', 'busy@example.com', true)`,
  );
  await test.query(
    `INSERT INTO console.membership (user_id, tenant_id, role) SELECT 'busy', unnest($1::text[]), 'owner'`,
    [[tenantId, other]],
  );
  const invite = (tenant: string) =>
    invitations.create(owner, { tenantId: tenant, email: 'many@example.com', role: 'viewer' });
  // One is used and one has expired: neither is open.
  await test.query(
    `INSERT INTO console.invitation (id, token_hash, email, tenant_id, role, invited_by, expires_at, used_at)
     SELECT 'many-' || n, 'many-' || n, 'many@example.com', $1, 'viewer', 'busy',
       now() + CASE n WHEN 1 THEN interval '-1 day' ELSE interval '1 day' END, CASE n WHEN 2 THEN now() END
     FROM generate_series(1, $2::int) n`,
    [tenantId, MAX_OPEN_INVITATIONS],
  );
  const made = await Promise.allSettled([1, 2, 3, 4].map(() => invite(tenantId)));
  const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  expect(refused).toHaveLength(2);
  for (const error of refused)
    expect(error).toMatchObject({ code: 'too_many_invitations', message: expect.stringContaining('At most 200 ') });
  // A refused one has no row in the audit log.
  expect(recorded).toHaveLength(2);
  expect(await invitations.list(tenantId)).toHaveLength(MAX_OPEN_INVITATIONS);
  expect(await invite(other)).toMatchObject({ link: expect.any(String) });
  await invitations.withdraw(owner, tenantId, 'many-3', () => {});
  expect(await invite(tenantId)).toMatchObject({ link: expect.any(String) });
});

it('a person who is removed does not come back by another invitation to the same tenant', async () => {
  const [tenantId, other] = [newId('ten'), newId('ten')];
  await test.query(
    `INSERT INTO console."user" (id, name, email, "emailVerified") VALUES ('owner', 'O', 'owner@example.com', true)`,
  );
  for (const tenant of [tenantId, other])
    await test.query(`INSERT INTO console.membership (user_id, tenant_id, role) VALUES ('owner', $1, 'owner')`, [
      tenant,
    ]);
  const owner = personAs('owner', 'owner@example.com', FROM);
  const invite = async (tenant: string, email: string) => {
    const { link } = await invitations.create(owner, { tenantId: tenant, email, role: 'admin' });
    return new URL(link).hash.slice(1);
  };
  const [used, left] = [await invite(tenantId, 'bob@example.com'), await invite(tenantId, 'bob@example.com')];
  const elsewhere = await invite(other, 'bob@example.com');
  const anothers = await invite(tenantId, 'eve@example.com');
  await accept(used, 'bob@example.com');
  const [bob] = await test.query<{ id: string }>(`SELECT id FROM console."user" WHERE email = 'bob@example.com'`);
  const person = { userId: bob!.id, email: 'bob@example.com' };

  await members.remove(owner, tenantId, bob!.id, () => {});
  await expect(invitations.acceptAs(person, left, FROM)).rejects.toMatchObject({ code: 'invitation_invalid' });
  expect(await members.roleOf(bob!.id, tenantId)).toBeNull();
  const before = { name: 'bob@example.com', role: 'admin', invitations: 1 };
  expect(recorded.at(-1)).toEqual({ action: 'member.remove', target: bob!.id, tenantId, before });
  // What is of another tenant, or of another person, stays.
  expect(await invitations.acceptAs(person, elsewhere, FROM)).toMatchObject({ tenantId: other });
  expect(await invitations.look(anothers)).toMatchObject({ email: 'eve@example.com' });
});
