import { mintInvitationSecret } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { ConsoleDatabase } from '../database';
import type { SignIn } from '../sign-in/sign-in';
import type { Changes } from './changes';
import { Invitations } from './invitations';

let database: ConsoleDatabase;
let invitations: Invitations;
let hashed: string[];
afterAll(() => database.onApplicationShutdown());
const test = useTestDatabase();
beforeAll(async () => {
  database = await ConsoleDatabase.open(test.url);
});
beforeEach(() => {
  hashed = [];
  const hash = (password: string) => Promise.resolve(String(hashed.push(password)));
  const signIn = { origin: 'https://console.example.com', auth: { $context: { password: { hash } } } };
  const changes = { record: () => Promise.resolve() };
  invitations = new Invitations(database, signIn as unknown as SignIn, changes as unknown as Changes);
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
