import { delay } from '@tollgate/runtime';
import type { TestDatabase } from '@tollgate/testing';
import { BrowserSession } from '../running/browser';
import { API, SESSION, signIn } from '../running/people';

const EMAIL = 'viewer@example.com';
/** Two looks of a stream. */
const LOOKS_MS = 2_500;
const RENEWED = /^tollgate\.session_token=[^;]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/;

/** A session that is used does not end, and its cookie does not either. */
export function renewalTests(
  deployed: () => {
    base: string;
    tenantId: string;
    database: Pick<TestDatabase, 'query'>;
    forgetTries: () => Promise<unknown>;
  },
): void {
  let browser: BrowserSession;
  beforeEach(async () => {
    await deployed().forgetTries();
    browser = new BrowserSession(deployed().base);
    await signIn(browser, EMAIL);
  });

  const ofToken = () => [decodeURIComponent(browser.cookies.get(SESSION)!).split('.')[0]];
  /** As if the session was last extended so many days ago. */
  const lastExtended = (days: number) =>
    deployed().database.query(
      `UPDATE console."session" SET "expiresAt" = now() + make_interval(days => 7 - ${days}) WHERE token = $1`,
      ofToken(),
    );
  const daysLeft = async () => {
    const [row] = await deployed().database.query<{ days: string }>(
      `SELECT round(extract(epoch FROM "expiresAt" - now()) / 86400) AS days FROM console."session" WHERE token = $1`,
      ofToken(),
    );
    return Number(row!.days);
  };
  const api = (path: string) => browser.get(`${API}/${path}`);

  it('a session that is used after a day is extended, and so is its cookie, whatever the answer is', async () => {
    for (const [path, status] of [
      ['me', 200],
      [`tenants/${deployed().tenantId}/usage`, 400],
      [`tenants/ten_x/usage`, 404],
      ['auth/passkey/list-user-passkeys', 200],
    ] as const) {
      await lastExtended(2);
      const before = browser.cookies.get(SESSION);
      const answer = await api(path);
      expect([path, answer.status, await daysLeft()]).toEqual([path, status, 7]);
      expect([path, answer.headers.getSetCookie()]).toEqual([path, [expect.stringMatching(RENEWED)]]);
      expect(browser.cookies.get(SESSION)).toBe(before);
    }
  });

  it('within a day of the last extension, no answer has a cookie', async () => {
    const answer = await api('me');
    expect([answer.status, answer.headers.getSetCookie(), await daysLeft()]).toEqual([200, [], 7]);
  });

  it('a change of the account that is refused extends the session and its cookie, too', async () => {
    await lastExtended(2);
    const refused = await browser.post(`${API}/auth/two-factor/disable`, { password: 'wrong password' });
    expect([refused.status, refused.headers.getSetCookie(), await daysLeft()]).toEqual([
      400,
      [expect.stringMatching(RENEWED)],
      7,
    ]);
  });

  it('the answer that opens a stream extends the session, and the looks of the stream do not', async () => {
    const path = `${API}/tenants/${deployed().tenantId}/live/overview`;
    await lastExtended(2);
    const stream = await browser.stream(path, 60_000);
    expect([stream.headers.getSetCookie(), await daysLeft()]).toEqual([[expect.stringMatching(RENEWED)], 7]);
    await lastExtended(3);
    await delay(LOOKS_MS);
    expect(await daysLeft()).toBe(4);
    await stream.body!.cancel();
    const answer = await api('me');
    expect([answer.headers.getSetCookie(), await daysLeft()]).toEqual([[expect.stringMatching(RENEWED)], 7]);
  });

  it('a session that was not used for seven days opens nothing, and no late answer takes a cookie away', async () => {
    await lastExtended(8);
    const answer = await api('me');
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
  });
}
