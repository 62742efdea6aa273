import { eventually, type TestDatabase } from '@tollgate/testing';
import { BrowserSession, type Reply } from '../running/browser';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, NEXT_PASSWORD, PASSWORD, type Role, secretOf, SESSION } from '../running/people';
import { totpOf } from '../running/totp';

/** Wrong passwords for an account in a quarter of an hour. */
const MAX_WRONG = 20;
const LOCKED_S = 15 * 60;

/** A guesser with many addresses neither tries on for long nor locks the person out. */
export function accountTriesTests(
  deployed: () => {
    base: string;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    mailbox: Mailbox;
    database: Pick<TestDatabase, 'query'>;
    forgetTries: () => Promise<unknown>;
  },
): void {
  beforeEach(() => deployed().forgetTries());
  let addresses = 0;
  const elsewhere = () => new BrowserSession(deployed().base, `127.6.0.${++addresses}`);
  const enter = (browser: BrowserSession, email: string, password = PASSWORD) =>
    browser.post(`${API}/auth/sign-in/email`, { email, password });
  const member = async (email: string) => {
    const { base, of, tenantId, mailbox } = deployed();
    return join(base, await invite(of('owner'), { tenantId, email, role: 'viewer', mailbox }), email);
  };
  const code = ({ status, json }: Reply) => [status, json?.error?.code ?? null];

  it('an account, or an address without one, takes 20 wrong passwords from browsers that do not know it', async () => {
    const email = 'guessed-from-everywhere@example.com';
    const known = await member(email);
    for (const guessed of [email, 'nobody-at-all@example.com']) {
      for (let time = 1; time <= MAX_WRONG; time++)
        expect([time, ...code(await enter(elsewhere(), guessed, 'wrong password'))]).toEqual([
          ...[time, 401, 'invalid_credentials'],
        ]);
      // Case does not distinguish people. The right password is not checked either.
      for (const written of [guessed, guessed.toUpperCase()]) {
        const refused = await enter(elsewhere(), written);
        expect(code(refused)).toEqual([429, 'rate_limited']);
        expect(refused.json.error.message).toContain('passkey');
        const waitS = Number(refused.headers.get('retry-after'));
        expect(waitS).toBeGreaterThan(0);
        expect(waitS).toBeLessThanOrEqual(LOCKED_S);
      }
    }
    // The person is not locked out: sessions stay, and so does the browser that knows the account.
    expect((await known.get(`${API}/me`)).status).toBe(200);
    await known.post(`${API}/auth/sign-out`);
    expect(code(await enter(known, email, 'wrong password'))).toEqual([401, 'invalid_credentials']);
    expect((await enter(known, email)).status).toBe(200);
    // It knows this account only.
    expect(code(await enter(known, 'nobody-at-all@example.com'))).toEqual([429, 'rate_limited']);

    // A link by mail makes another browser a known one.
    const { mailbox } = deployed();
    const next = elsewhere();
    await next.post(`${API}/recovery/request`, { email });
    await eventually(() => expect(mailbox.linkTo(email)).toContain('/reset-password#'));
    const used = { secret: secretOf(mailbox.linkTo(email)), password: NEXT_PASSWORD };
    expect((await next.post(`${API}/recovery/use`, used)).status).toBe(200);
    expect((await enter(next, email, NEXT_PASSWORD)).status).toBe(200);
  });

  it('right passwords do not count', async () => {
    const email = 'signs-in-often@example.com';
    await member(email);
    for (let time = 1; time <= MAX_WRONG + 1; time++) expect((await enter(elsewhere(), email)).status).toBe(200);
  });

  it('a session takes 20 wrong passwords of its account, from whatever addresses and for whatever call', async () => {
    const email = 'stolen-session@example.com';
    const known = await member(email);
    const stolen = () => {
      const browser = elsewhere();
      browser.cookies.set(SESSION, known.cookies.get(SESSION)!);
      return browser;
    };
    const calls = (password: string): [string, object][] => [
      ['auth/change-password', { currentPassword: password, newPassword: NEXT_PASSWORD }],
      ['auth/two-factor/enable', { password }],
      ['auth/two-factor/disable', { password }],
      ['account/erase', { email, password }],
    ];
    const ask = async (browser: BrowserSession, [call, body]: [string, object]) =>
      code(await browser.post(`${API}/${call}`, body));
    // Anybody can try to sign in, and takes no try from a session.
    for (let time = 0; time <= MAX_WRONG; time++) await enter(elsewhere(), email, 'wrong password');
    for (let time = 0; time < MAX_WRONG; time++) {
      const guess = calls('wrong password')[time % calls('').length]!;
      const refused = guess[0] === 'account/erase' ? [401, 'invalid_credentials'] : [400, 'sign_in_failed'];
      expect([time, ...(await ask(stolen(), guess))]).toEqual([time, ...refused]);
    }
    for (const right of calls(PASSWORD)) expect(await ask(stolen(), right)).toEqual([429, 'rate_limited']);
    // The person is not locked out.
    const enabled = calls(PASSWORD)[1]!;
    expect(await ask(known, enabled)).toEqual([200, null]);
  });

  it('after ten wrong codes in a row, an account takes no code for 15 minutes, from whatever address', async () => {
    const { database } = deployed();
    const email = 'guessed-codes@example.com';
    const browser = await member(email);
    const { totpURI } = (await browser.post(`${API}/auth/two-factor/enable`, { password: PASSWORD })).json as {
      totpURI: string;
    };
    await browser.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) });
    const waiting = async () => {
      const fresh = elsewhere();
      expect((await enter(fresh, email)).json).toMatchObject({ twoFactorRedirect: true });
      return fresh;
    };
    const set = (columns: string) =>
      database.query(
        `UPDATE console."twoFactor" SET ${columns} WHERE "userId" = (SELECT id FROM console."user" WHERE email = $1)`,
        [email],
      );
    await set('"failedVerificationCount" = 9');
    const wrong = { code: 'wrong' };
    expect(code(await (await waiting()).post(`${API}/auth/two-factor/verify-backup-code`, wrong))).toEqual([
      ...[401, 'invalid_credentials'],
    ]);
    await deployed().forgetTries();
    const refused = await (await waiting()).post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) });
    expect(code(refused)).toEqual([429, 'rate_limited']);
    expect(refused.headers.get('retry-after')).toBe(String(LOCKED_S));
    expect(refused.json.error.message).toContain('15 minutes');
    expect((await browser.get(`${API}/me`)).status).toBe(200);
    await set(`"lockedUntil" = now() - interval '1 second'`);
    await deployed().forgetTries();
    const late = await waiting();
    expect((await late.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) })).status).toBe(200);
  });
}
