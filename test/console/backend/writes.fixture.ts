import { newId } from '@tollgate/contracts';
import type { TestDatabase } from '@tollgate/testing';
import { BrowserSession, type Reply } from '../running/browser';
import type { ForgingSession } from './forging';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, PASSWORD, secretOf, signIn } from '../running/people';
import { totpOf } from '../running/totp';

export const OWNER = 'writer@example.com';
export const OTHER = 'other-writer@example.com';
export const NEXT_PASSWORD = 'another long enough password';
const LAST_PASSWORD = 'a password of a recovery link';

/** What the steps share: each may need what those before it made. */
export interface Made {
  operator: BrowserSession;
  owner: ForgingSession;
  other: BrowserSession;
  tenantId: string;
  base: string;
  mailbox: Mailbox;
  database: Pick<TestDatabase, 'query'>;
  forgetTries: () => Promise<unknown>;
  forging: (person: BrowserSession) => ForgingSession;
  keyId: string;
  tokenId: string;
  totpUri: string;
  recoveryLink: string;
}
/** `author`: null, if the person is erased. */
export type Step = [route: string, action: string, author: string | null, write: (made: Made) => Promise<Reply>];

export const tenant = ({ tenantId }: Made, path: string) => `${API}/tenants/${tenantId}/${path}`;
export const operated = ({ tenantId }: Made, path = '') => `${API}/operator/tenants/${tenantId}${path}`;
export const auth = (browser: BrowserSession, call: string, body: object) => browser.post(`${API}/auth/${call}`, body);
const book = (kind: string, amountCents: number) => (made: Made) =>
  made.operator.post(operated(made, '/credit'), { kind, amountCents, reason: 'written', ref: `written-${kind}` });
export const idOf = async ({ owner, tenantId }: Made, email: string): Promise<string> => {
  const { data } = (await owner.get(`${API}/tenants/${tenantId}/members`)).json as {
    data: { userId: string; email: string }[];
  };
  return data.find((member) => member.email === email)!.userId;
};

/** Another viewer of the tenant. */
const joined = async ({ base, owner, tenantId, mailbox, forging }: Made, email: string) =>
  forging(await join(base, await invite(owner, { tenantId, email, role: 'viewer', mailbox }), email));

/** Every write of the backend, in an order in which each succeeds. */
export const STEPS: readonly Step[] = [
  ['POST operator/tenants/:tenantId/credit', 'credit.add', 'operator@example.com', book('topup', 900)],
  ['POST operator/tenants/:tenantId/credit', 'credit.refund', 'operator@example.com', book('refund', 100)],
  ['POST operator/tenants/:tenantId/credit', 'credit.adjust', 'operator@example.com', book('adjustment', -1)],
  [
    'PATCH operator/tenants/:tenantId',
    'tenant.suspend',
    'operator@example.com',
    (made) => made.operator.send('PATCH', operated(made), { status: 'suspended' }),
  ],
  [
    'PATCH operator/tenants/:tenantId',
    'tenant.resume',
    'operator@example.com',
    (made) => made.operator.send('PATCH', operated(made), { status: 'active' }),
  ],
  [
    'POST operator/reconcile',
    'reconcile.start',
    'operator@example.com',
    ({ operator }) => operator.post(`${API}/operator/reconcile`),
  ],
  [
    'POST tenants/:tenantId/keys',
    'key.create',
    OWNER,
    async (made) => {
      const answer = await made.owner.post(tenant(made, 'keys'), { name: 'written' });
      made.keyId = answer.json.id as string;
      return answer;
    },
  ],
  [
    'PATCH tenants/:tenantId/keys/:id',
    'key.update',
    OWNER,
    (made) => made.owner.send('PATCH', tenant(made, `keys/${made.keyId}`), { name: 'written again' }),
  ],
  [
    'POST tenants/:tenantId/keys/:id/rotate',
    'key.rotate',
    OWNER,
    (made) => made.owner.post(tenant(made, `keys/${made.keyId}/rotate`), { graceSeconds: 0 }),
  ],
  [
    'PUT tenants/:tenantId/keys/:keyId/budget',
    'budget.set',
    OWNER,
    (made) => made.owner.send('PUT', tenant(made, `keys/${made.keyId}/budget`), { budgetCents: 5 }),
  ],
  [
    'PUT tenants/:tenantId/budget',
    'budget.set',
    OWNER,
    (made) => made.owner.send('PUT', tenant(made, 'budget'), { budgetCents: 50 }),
  ],
  [
    'DELETE tenants/:tenantId/keys/:id',
    'key.revoke',
    OWNER,
    (made) => made.owner.send('DELETE', tenant(made, `keys/${made.keyId}`)),
  ],
  [
    // The key of the session. Its next requests make none.
    'POST tenants/:tenantId/playground',
    'key.create',
    OWNER,
    (made) => made.owner.post(tenant(made, 'playground'), { model: 'sim-small', prompt: 'Hi', maxTokens: 1 }),
  ],
  [
    'POST tenants/:tenantId/tokens',
    'token.create',
    OWNER,
    async (made) => {
      const answer = await made.owner.post(tenant(made, 'tokens'), { name: 'written', scopes: ['keys:read'] });
      made.tokenId = answer.json.id as string;
      return answer;
    },
  ],
  [
    'DELETE tenants/:tenantId/tokens/:id',
    'token.revoke',
    OWNER,
    (made) => made.owner.send('DELETE', tenant(made, `tokens/${made.tokenId}`)),
  ],
  [
    'POST tenants/:tenantId/invitations',
    'invitation.create',
    OWNER,
    (made) => made.owner.post(tenant(made, 'invitations'), { email: OTHER, role: 'viewer' }),
  ],
  [
    'POST invitation/accept-as-new',
    'member.add',
    OTHER,
    async (made) => {
      const account = { secret: secretOf(made.mailbox.linkTo(OTHER)), name: 'Other', email: OTHER, password: PASSWORD };
      const answer = await made.other.post(`${API}/invitation/accept-as-new`, account);
      await signIn(made.other, OTHER);
      return answer;
    },
  ],
  [
    'PATCH tenants/:tenantId/members/:userId',
    'member.update',
    OWNER,
    async (made) => made.owner.send('PATCH', tenant(made, `members/${await idOf(made, OTHER)}`), { role: 'billing' }),
  ],
  [
    'DELETE tenants/:tenantId/members/:userId',
    'member.remove',
    OWNER,
    async (made) => made.owner.send('DELETE', tenant(made, `members/${await idOf(made, OTHER)}`)),
  ],
  [
    'POST invitation/accept',
    'member.add',
    OTHER,
    async ({ owner, other, tenantId, mailbox }) => {
      const link = await invite(owner, { tenantId, email: OTHER, role: 'viewer', mailbox });
      return other.post(`${API}/invitation/accept`, { secret: secretOf(link) });
    },
  ],
  [
    'DELETE tenants/:tenantId/invitations/:id',
    'invitation.withdraw',
    OWNER,
    async (made) => {
      await made.owner.post(tenant(made, 'invitations'), { email: 'withdrawn@example.com', role: 'viewer' });
      const { invitations } = (await made.owner.get(tenant(made, 'members'))).json as { invitations: [{ id: string }] };
      return made.owner.send('DELETE', tenant(made, `invitations/${invitations[0].id}`));
    },
  ],
  [
    'POST operator/tenants',
    'tenant.create',
    'operator@example.com',
    ({ operator }) => operator.post(`${API}/operator/tenants`, { name: 'Written' }),
  ],
  [
    'DELETE sessions/:id',
    'session.end',
    OTHER,
    async ({ base, other }) => {
      await signIn(new BrowserSession(base), OTHER);
      const { data } = (await other.get(`${API}/sessions`)).json as { data: { id: string; isCurrent: boolean }[] };
      return other.send('DELETE', `${API}/sessions/${data.find(({ isCurrent }) => !isCurrent)!.id}`);
    },
  ],
  [
    // A browser adds them (passkeys.part.ts).
    'DELETE passkeys/:id',
    'passkey.remove',
    OTHER,
    async ({ database, other }) => {
      const id = newId('msg');
      await database.query(
        `INSERT INTO console.passkey
           ("id", "name", "publicKey", "userId", "credentialID", "counter", "deviceType", "backedUp")
         SELECT $1, 'laptop', 'x', id, $1, 0, 'x', false FROM console."user" WHERE email = $2`,
        [id, OTHER],
      );
      return other.send('DELETE', `${API}/passkeys/${id}`);
    },
  ],
  [
    'POST auth/two-factor/verify-totp',
    'totp.enable',
    OTHER,
    async (made) => {
      const offered = await auth(made.other, 'two-factor/enable', { password: PASSWORD });
      made.totpUri = offered.json.totpURI as string;
      return auth(made.other, 'two-factor/verify-totp', { code: totpOf(made.totpUri) });
    },
  ],
  [
    'POST auth/two-factor/disable',
    'totp.disable',
    OTHER,
    ({ other }) => auth(other, 'two-factor/disable', { password: PASSWORD }),
  ],
  [
    'POST auth/change-password',
    'password.change',
    OTHER,
    ({ other }) => auth(other, 'change-password', { currentPassword: PASSWORD, newPassword: NEXT_PASSWORD }),
  ],
  [
    'POST tenants/:tenantId/members/:userId/recovery',
    'recovery.create',
    OWNER,
    async (made) =>
      made.owner.post(tenant(made, `members/${await idOf(made, OTHER)}/recovery`), { password: PASSWORD }),
  ],
  [
    'POST operator/people/:userId/recovery',
    'recovery.create',
    'operator@example.com',
    async (made) => {
      const path = `${API}/operator/people/${await idOf(made, OTHER)}/recovery`;
      const answer = await made.operator.post(path, { password: PASSWORD });
      made.recoveryLink = answer.json.link as string;
      return answer;
    },
  ],
  [
    'POST recovery/use',
    'password.reset',
    OTHER,
    async ({ other, recoveryLink }) => {
      const answer = await other.post(`${API}/recovery/use`, {
        secret: secretOf(recoveryLink),
        password: LAST_PASSWORD,
      });
      await signIn(other, OTHER, LAST_PASSWORD);
      return answer;
    },
  ],
  [
    'POST account/erase',
    'account.erase',
    null,
    async (made) => {
      const leaving = await joined(made, 'leaving-writer@example.com');
      return leaving.post(`${API}/account/erase`, { email: 'leaving-writer@example.com', password: PASSWORD });
    },
  ],
  [
    'POST operator/people/:userId/erase',
    'account.erase',
    'operator@example.com',
    async (made) => {
      const email = 'erased-writer@example.com';
      await joined(made, email);
      const path = `${API}/operator/people/${await idOf(made, email)}/erase`;
      return made.operator.post(path, { password: PASSWORD });
    },
  ],
];
/** Writes that change nothing, or only the session of who calls them. */
export const NO_CHANGES = [
  ...['POST operator/tenants/:tenantId/credit/preview', 'POST invitation/look'],
  // Anybody may ask for a mail. It gives a link to nobody but the person of the address.
  ...['POST recovery/request', 'POST recovery/look'],
  ...['POST auth/sign-in/email', 'POST auth/sign-in/social', 'POST auth/sign-out', 'POST auth/link-social'],
  // A secret that is only offered. It is in force when its first code is verified.
  'POST auth/two-factor/enable',
  ...['POST auth/two-factor/verify-backup-code', 'POST auth/passkey/verify-authentication'],
  // passkeys.part.ts
  'POST auth/passkey/verify-registration',
];
