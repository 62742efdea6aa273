import { BrowserSession } from '../running/browser';
import { signInAtIssuer } from '../running/issuer';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, PASSWORD, type Role, SESSION, signIn } from '../running/people';
import { totpOf } from '../running/totp';

/** Whoever plants a session in the browser of another person does not get the account of that person. */
export function fixationTests(
  deployed: () => {
    base: string;
    operator: BrowserSession;
    tenantId: string;
    mailbox: Mailbox;
    forgetTries: () => Promise<unknown>;
  },
): void {
  const PLANTER = 'planter@example.com';
  const CAREFUL = 'fixed-careful@example.com';
  let totpUri: string;
  beforeAll(async () => {
    const { base, operator, tenantId, mailbox, forgetTries } = deployed();
    await forgetTries();
    // Invites the other, because the invitations of one person are limited.
    const planter = await joined(operator, PLANTER, 'admin');
    const careful = await joined(planter, CAREFUL, 'viewer');
    async function joined(by: BrowserSession, email: string, role: Role): Promise<BrowserSession> {
      return join(base, await invite(by, { tenantId, email, role, mailbox }), email);
    }
    const enable = async (browser: BrowserSession) => {
      const { status, json } = await browser.post(`${API}/auth/two-factor/enable`, { password: PASSWORD });
      expect(status).toBe(200);
      return (json as { totpURI: string }).totpURI;
    };
    // Never confirmed, so it is not on.
    await enable(planter);
    totpUri = await enable(careful);
    const turnedOn = await careful.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpUri) });
    expect(turnedOn.status).toBe(200);
  });
  beforeEach(() => deployed().forgetTries());

  const emailOf = async (session: string | undefined) => {
    const browser = new BrowserSession(deployed().base);
    browser.cookies.set(SESSION, session ?? '');
    const { status, json } = await browser.get(`${API}/me`);
    return status === 200 ? (json.email as string) : null;
  };
  const enter = async (browser: BrowserSession, email: string) => {
    const answer = await browser.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });
    expect(answer.status).toBe(200);
  };
  const proveCode = async (browser: BrowserSession) => {
    await deployed().forgetTries();
    return browser.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpUri) });
  };

  it.each<[string, string, (browser: BrowserSession) => Promise<unknown>]>([
    ['a password', 'owner@example.com', (browser) => enter(browser, 'owner@example.com')],
    [
      'a password and a code',
      CAREFUL,
      async (browser) => {
        await enter(browser, CAREFUL);
        expect((await proveCode(browser)).status).toBe(200);
      },
    ],
    ['single sign-on', 'fixed@example.com', (browser) => signInAtIssuer(browser, 'fixed')],
  ])(
    'a sign-in by %s makes a new session, and a planted one stays that of its planter',
    async (_by, email, proceed) => {
      const planter = new BrowserSession(deployed().base);
      await signIn(planter, PLANTER);
      const planted = planter.cookies.get(SESSION)!;
      expect(await emailOf(planted)).toBe(PLANTER);
      const browser = new BrowserSession(deployed().base);
      browser.cookies.set(SESSION, planted);
      await proceed(browser);
      const made = browser.cookies.get(SESSION)!;
      // Behind the point is only the signature.
      expect(made.split('.')[0]).not.toBe(planted.split('.')[0]);
      expect(await emailOf(made)).toBe(email);
      expect(await emailOf(planted)).toBe(PLANTER);
      // A planted session that was never made signs nobody in, before and after.
      const invented = `${'x'.repeat(32)}.${planted.split('.')[1]}`;
      const other = new BrowserSession(deployed().base);
      other.cookies.set(SESSION, invented);
      await proceed(other);
      expect(other.cookies.get(SESSION)).not.toBe(invented);
      expect([await emailOf(other.cookies.get(SESSION)), await emailOf(invented)]).toEqual([email, null]);
    },
  );

  it('a session that is planted between the password and the code does not get the account either', async () => {
    const planter = new BrowserSession(deployed().base);
    await signIn(planter, PLANTER);
    const planted = planter.cookies.get(SESSION)!;
    const browser = new BrowserSession(deployed().base);
    await enter(browser, CAREFUL);
    expect(browser.cookies.has(SESSION)).toBe(false);
    browser.cookies.set(SESSION, planted);
    const proven = await proveCode(browser);
    expect(proven.status).toBe(401);
    expect(await emailOf(planted)).toBe(PLANTER);
    // The code of one person is none of another.
    expect((await planter.get(`${API}/me`)).json.hasTotp).toBe(false);
  });

  it('a sign-in of the same person makes a new session, too', async () => {
    const browser = new BrowserSession(deployed().base);
    await signIn(browser, PLANTER);
    const before = browser.cookies.get(SESSION);
    await signIn(browser, PLANTER);
    expect(browser.cookies.get(SESSION)).not.toBe(before);
  });
}
