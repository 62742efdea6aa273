import { newId } from '@tollgate/contracts';
import { eventually, type TestDatabase } from '@tollgate/testing';
import { BrowserSession, type Reply } from '../running/browser';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, PASSWORD, type Role, secretOf } from '../running/people';
import { totpOf } from '../running/totp';

export const NEXT_PASSWORD = 'the password after the forgotten one';

export interface Deployed {
  base: string;
  stderr: () => string;
  operator: BrowserSession;
  of: (role: Role) => BrowserSession;
  tenantId: string;
  foreignId: string;
  mailbox: Mailbox;
  database: Pick<TestDatabase, 'query'>;
  forgetTries: () => Promise<unknown>;
}

export type Recovering = ReturnType<typeof recovering>;

/** What the tests of forgotten passwords do. */
export function recovering(deployed: () => Deployed) {
  /** An admin of these tests alone: the invitations of one person are limited. */
  let inviter: BrowserSession;
  beforeEach(() => deployed().forgetTries());
  beforeAll(async () => {
    const { base, operator, tenantId, mailbox, forgetTries } = deployed();
    await forgetTries();
    const email = 'inviter@example.com';
    inviter = await join(base, await invite(operator, { tenantId, email, role: 'admin', mailbox }), email);
  });
  let callers = 0;
  /** Tries are counted by address. */
  const anybody = () => new BrowserSession(deployed().base, `127.2.0.${++callers}`);
  const member = async (email: string, role: Role = 'viewer') => {
    const { base, operator, tenantId, mailbox } = deployed();
    return join(base, await invite(role === 'owner' ? operator : inviter, { tenantId, email, role, mailbox }), email);
  };
  const idOf = async (email: string) =>
    (await deployed().database.query<{ id: string }>('SELECT id FROM console."user" WHERE email = $1', [email]))[0]!.id;
  const mailsTo = (email: string) =>
    deployed().mailbox.received.filter(({ to, text }) => to.includes(email) && text.includes('/reset-password#'));
  const mailedLink = async (email: string): Promise<string> => {
    const before = mailsTo(email).length;
    expect((await anybody().post(`${API}/recovery/request`, { email })).status).toBe(204);
    await eventually(() => expect(mailsTo(email).length).toBe(before + 1));
    return deployed().mailbox.linkTo(email);
  };
  const use = (link: string, password = NEXT_PASSWORD) =>
    anybody().post(`${API}/recovery/use`, { secret: secretOf(link), password });
  const code = ({ status, json }: Reply) => [status, json?.error?.code ?? null];
  const linkFor = async (by: BrowserSession, email: string) =>
    by.post(`${API}/tenants/${deployed().tenantId}/members/${await idOf(email)}/recovery`, { password: PASSWORD });

  const look = async (link: string) => (await anybody().post(`${API}/recovery/look`, { secret: secretOf(link) })).json;
  const addTotp = async (browser: BrowserSession, password = PASSWORD): Promise<string> => {
    const { json } = await browser.post(`${API}/auth/two-factor/enable`, { password });
    const { totpURI } = json as { totpURI: string };
    expect((await browser.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) })).status).toBe(200);
    // The next sign-in needs a code, too.
    await deployed().forgetTries();
    return totpURI;
  };
  const addPasskey = async (email: string) =>
    deployed().database.query(
      `INSERT INTO console."passkey" ("id", "publicKey", "userId", "credentialID", "counter", "deviceType", "backedUp")
       VALUES ($1, 'key', $2, $1, 0, 'singleDevice', false)`,
      [newId('msg'), await idOf(email)],
    );
  /** What opens the account beside the password. */
  const proofsOf = async (email: string) =>
    (
      await deployed().database.query(
        `SELECT u."emailVerified" AS proven, u."twoFactorEnabled" IS TRUE AS asks,
           (SELECT count(*)::int FROM console."twoFactor" t WHERE t."userId" = u.id) AS totp,
           (SELECT count(*)::int FROM console."passkey" p WHERE p."userId" = u.id) AS passkeys
         FROM console."user" u WHERE u.email = $1`,
        [email],
      )
    )[0];
  return { anybody, member, idOf, mailsTo, mailedLink, use, code, linkFor, look, addTotp, addPasskey, proofsOf };
}
