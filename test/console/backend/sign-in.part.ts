import { eventually, type TestDatabase } from '@tollgate/testing';
import { BrowserSession } from '../running/browser';
import { type Issuer, signInAtIssuer } from '../running/issuer';
import { REFUSED_ADDRESS, type Mailbox } from '../running/mailbox';
import { API, invite, join, PASSWORD, type Role, secretOf, signIn } from '../running/people';
import { totpOf } from '../running/totp';

interface AuditRow {
  action: string;
  after: Record<string, unknown> | null;
}

interface Membership {
  id: string;
  role: string;
}

export const CLIENT_SECRET = 'the-secret-of-the-client-at-the-issuer';
const person = (email: string, groups: string[] = [], isVerified = true) => ({
  ...{ email, email_verified: isVerified, name: email, groups },
});
/** The accounts at the issuer. Of `example.com`, everybody may sign in. */
export const PEOPLE_AT_ISSUER = {
  ada: person('ada@example.com', ['acme-admins', 'acme-viewers', 'unknown']),
  ops: person('ops@example.com', ['ops']),
  none: person('none@example.com'),
  unverified: person('unverified@example.com', ['ops'], false),
  foreign: person('somebody@evil.example', ['ops']),
  invited: person('invited-by-mail@example.com'),
  linked: person(REFUSED_ADDRESS),
  fixed: person('fixed@example.com'),
  bell: { ...person('bell@example.com'), name: 'Be\u0007ll' },
  turned: { ...person('turned@example.com'), name: 'Ada \u202eecalevoL' },
  'bell-address': person('be\u0007ll@example.com'),
  'turned-address': person('a\u202eb@example.com'),
};

/** Mail, the second factor, and single sign-on at a real provider. */
export function signInTests(
  deployed: () => {
    base: string;
    stderr: () => string;
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    /** Groups of the issuer name this id, which no tenant has, before they name `tenantId`. */
    mailbox: Mailbox;
    issuer: Issuer;
    database: Pick<TestDatabase, 'query'>;
    forgetTries: () => Promise<unknown>;
  },
): void {
  beforeEach(() => deployed().forgetTries());
  const atIssuer = async (login: string, start?: 'sign-in/social' | 'link-social', browser?: BrowserSession) => {
    const session = browser ?? new BrowserSession(deployed().base);
    return { session, page: await signInAtIssuer(session, login, start) };
  };
  const logged = async (author: string) =>
    ((await deployed().operator.get(`${API}/operator/audit?author=${author}`)).json.data as AuditRow[])
      .map(({ action, after }) => [action, after] as const)
      .sort(([a], [b]) => a.localeCompare(b));
  const me = async (session: BrowserSession) => (await session.get(`${API}/me`)).json;

  it('an invitation goes by mail, and its answer has the link only if the mail was refused', async () => {
    const { of, tenantId, mailbox, base } = deployed();
    const path = `${API}/tenants/${tenantId}/invitations`;
    const sent = await of('owner').post(path, { email: 'mailed@example.com', role: 'viewer' });
    expect(sent.json.link).toBeNull();
    const mailed = mailbox.received.findLast(({ to }) => to.includes('mailed@example.com'))!;
    expect(mailed.text).toContain('Acme');
    const browser = await join(base, mailbox.linkTo('mailed@example.com'), 'mailed@example.com');
    expect((await me(browser)).tenants).toMatchObject([{ id: tenantId, role: 'viewer' }]);
    const refused = await of('owner').post(path, { email: REFUSED_ADDRESS, role: 'viewer' });
    expect(secretOf(refused.json.link as string)).toHaveLength(43);
  });

  it('a sign-in deletes the sessions that have expired, and no other', async () => {
    const { base, of, tenantId, mailbox, database } = deployed();
    const email = 'twice@example.com';
    const first = await join(base, await invite(of('owner'), { tenantId, email, role: 'viewer', mailbox }), email);
    const [{ id }] = (await first.get(`${API}/sessions`)).json.data as [{ id: string }];
    const second = new BrowserSession(base);
    await signIn(second, email);
    await database.query(`UPDATE console."session" SET "expiresAt" = now() - interval '1 second' WHERE id = $1`, [id]);
    const kept = () =>
      database.query<{ id: string }>(
        'SELECT s.id FROM console."session" s JOIN console."user" u ON u.id = s."userId" WHERE u.email = $1',
        [email],
      );
    expect(await kept()).toHaveLength(2);
    await signIn(new BrowserSession(base), email);
    expect(await kept()).toHaveLength(2);
    expect((await kept()).map((session) => session.id)).not.toContain(id);
    expect((await first.get(`${API}/me`)).status).toBe(401);
    expect((await me(second)).email).toBe(email);
  });

  it('with a second factor a password alone opens nothing, and each backup code works once', async () => {
    const { base, of, tenantId, mailbox } = deployed();
    const email = 'careful@example.com';
    const link = await invite(of('owner'), { tenantId, email, role: 'viewer', mailbox });
    const browser = await join(base, link, email);
    expect((await browser.post(`${API}/auth/two-factor/enable`, { password: 'wrong password!' })).status).toBe(400);
    const enabled = await browser.post(`${API}/auth/two-factor/enable`, { password: PASSWORD });
    const { totpURI, backupCodes } = enabled.json as { totpURI: string; backupCodes: string[] };
    const first = totpOf(totpURI);
    expect((await browser.post(`${API}/auth/two-factor/verify-totp`, { code: first })).status).toBe(200);
    expect((await me(browser)).hasTotp).toBe(true);

    const begin = async () => {
      const fresh = new BrowserSession(base);
      const answer = await fresh.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });
      expect(answer.json).toMatchObject({ twoFactorRedirect: true });
      expect((await fresh.get(`${API}/me`)).status).toBe(401);
      return fresh;
    };
    const byCode = await begin();
    const wrong = String((Number(totpOf(totpURI)) + 1) % 1_000_000).padStart(6, '0');
    const refusals = [];
    for (const code of [wrong, first]) {
      const { status, json } = await byCode.post(`${API}/auth/two-factor/verify-totp`, { code });
      refusals.push({ status, error: { ...json.error, requestId: null } });
    }
    expect(refusals[0]).toMatchObject({ status: 401, error: { code: 'invalid_credentials' } });
    expect(refusals[1]).toEqual(refusals[0]);
    // Both count for the sign-in and for the account.
    const { database } = deployed();
    const counted = `SELECT t."failedVerificationCount" AS failed, v."value" AS tries FROM console."twoFactor" t
      JOIN console."user" u ON u.id = t."userId" JOIN console."verification" w ON w."value" = u.id
      JOIN console."verification" v ON v."identifier" = '2fa-attempts-' || w."identifier" WHERE u.email = $1`;
    expect(await database.query(counted, [email])).toEqual([{ failed: 2, tries: '2' }]);
    expect((await byCode.get(`${API}/me`)).status).toBe(401);
    await deployed().forgetTries();
    expect((await byCode.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) })).status).toBe(200);
    expect((await me(byCode)).email).toBe(email);

    // A browser cannot ask to be trusted: the next sign-in needs a code again.
    await deployed().forgetTries();
    const trusted = await begin();
    const trust = { code: totpOf(totpURI), trustDevice: true };
    expect((await trusted.post(`${API}/auth/two-factor/verify-totp`, trust)).status).toBe(200);
    await trusted.post(`${API}/auth/sign-out`);
    const again = await trusted.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });
    expect(again.json).toMatchObject({ twoFactorRedirect: true });

    const code = backupCodes[0];
    expect((await (await begin()).post(`${API}/auth/two-factor/verify-backup-code`, { code })).status).toBe(200);
    await deployed().forgetTries();
    expect((await (await begin()).post(`${API}/auth/two-factor/verify-backup-code`, { code })).status).toBe(401);
  });

  describe('single sign-on', () => {
    it('creates an account for an allowed domain, with the roles of its groups, and ends on the console', async () => {
      const { session, page } = await atIssuer('ada');
      expect(page.href).toBe(`${deployed().base}/console/`);
      // The stronger of two roles.
      expect(await me(session)).toMatchObject({ email: 'ada@example.com', isOperator: false });
      const tenants = (await me(session)).tenants as Membership[];
      expect(tenants.map(({ id, role }) => [id, role])).toEqual([[deployed().tenantId, 'admin']]);
      expect((await session.get(`${API}/operator/tenants`)).status).toBe(404);
      const operator = await atIssuer('ops');
      expect((await operator.session.get(`${API}/operator/tenants`)).status).toBe(200);
      expect((await me((await atIssuer('none')).session)).tenants).toEqual([]);
      expect(await logged('ada@example.com')).toEqual([
        ['account.create', { name: 'ada@example.com' }],
        ['member.add', { role: 'owner', byGroup: true }],
        ['member.add', { role: 'admin', byGroup: true }],
      ]);
      expect(await logged('ops@example.com')).toEqual([
        ['account.create', { name: 'ops@example.com' }],
        ['operator.add', { byGroup: true }],
      ]);
      // A sign-in that changes nothing is not in the log.
      await atIssuer('ada');
      expect(await logged('ada@example.com')).toHaveLength(3);
    });

    it('takes a role back when the group is gone, and leaves the roles of invitations as they are', async () => {
      const { database, tenantId, of } = deployed();
      const [{ id }] = (await database.query(`SELECT id FROM console."user" WHERE email = 'none@example.com'`)) as [
        { id: string },
      ];
      await database.query(`INSERT INTO console.membership VALUES ($1, $2, 'admin', now(), true)`, [id, tenantId]);
      await database.query('INSERT INTO console.provider_operator VALUES ($1)', [id]);
      const { session } = await atIssuer('none');
      expect(await me(session)).toMatchObject({ isOperator: false, tenants: [] });
      expect(await logged('none@example.com')).toEqual([
        ['account.create', { name: 'none@example.com' }],
        ['member.remove', null],
        ['operator.remove', { byGroup: true }],
      ]);
      expect((await of('viewer').get(`${API}/me`)).json.tenants).toMatchObject([{ role: 'viewer' }]);
    });

    it.each(['unverified', 'foreign', 'bell-address', 'turned-address'])(
      'refuses %s, and the sign-in page says why',
      async (login) => {
        const { session, page } = await atIssuer(login);
        expect(page.pathname).toBe('/console/sign-in');
        expect(page.searchParams.get('error')).not.toBeNull();
        expect((await session.get(`${API}/me`)).status).toBe(401);
      },
    );

    it.each(['bell', 'turned'])('does not take over the name of %s, which can look like another', async (login) => {
      const email = `${login}@example.com`;
      for (let time = 0; time < 2; time++)
        expect(await me((await atIssuer(login)).session)).toMatchObject({ email, name: email });
    });

    it('takes an account over only if its address is proven, or if its person asks for it', async () => {
      const { base, of, tenantId, mailbox } = deployed();
      const email = 'invited-by-mail@example.com';
      await join(base, await invite(of('owner'), { tenantId, email, role: 'billing', mailbox }), email);
      const known = await atIssuer('invited');
      expect((await me(known.session)).tenants).toMatchObject([{ id: tenantId, role: 'billing' }]);

      // Its link was shown to the inviter, who could have created the account.
      const shown = await of('owner').post(`${API}/tenants/${tenantId}/invitations`, {
        email: REFUSED_ADDRESS,
        role: 'viewer',
      });
      const browser = await join(base, shown.json.link as string, REFUSED_ADDRESS);
      const unproven = await atIssuer('linked');
      expect(unproven.page.pathname).toBe('/console/sign-in');
      const linked = await atIssuer('linked', 'link-social', browser);
      expect(linked.page.pathname).toBe('/console/account');
      expect((await me((await atIssuer('linked')).session)).email).toBe(REFUSED_ADDRESS);
      // Once for each of the two, however often they sign in.
      for (const name of [email, REFUSED_ADDRESS])
        expect((await logged(name)).filter(([action]) => action.startsWith('account'))).toEqual([
          ['account.link', { name }],
        ]);
    });

    it('with a wrong client secret says so in the log, and passwords still work', async () => {
      const { issuer, stderr, base } = deployed();
      await issuer.setSecret('another-secret-than-that-of-the-console');
      try {
        const { session, page } = await atIssuer('ada');
        expect(page.pathname).toBe('/console/sign-in');
        expect((await session.get(`${API}/me`)).status).toBe(401);
        await eventually(() => expect(stderr()).toContain('TOLLGATE_OIDC_CLIENT_SECRET'));
        expect(stderr()).not.toContain(CLIENT_SECRET);
        await signIn(new BrowserSession(base), 'viewer@example.com');
      } finally {
        await issuer.setSecret(CLIENT_SECRET);
      }
    });

    it('a callback that nobody began, or with a foreign state, signs nobody in', async () => {
      for (const query of ['', '?code=x', '?code=x&state=y', '?error=access_denied&state=y']) {
        const browser = new BrowserSession(deployed().base);
        const answer = await browser.get(`${API}/auth/callback/oidc${query}`);
        expect(answer.status).toBe(302);
        expect(answer.headers.get('location')).toMatch(new RegExp(`^${deployed().base}/console/sign-in`));
        expect((await browser.get(`${API}/me`)).status).toBe(401);
      }
    });
  });
}
