import type { TestDatabase } from '@tollgate/testing';
import { BrowserSession } from '../running/browser';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, PASSWORD, type Role, secretOf } from '../running/people';

/** Tries of links that an address has in a minute. */
const MAX_TRIES = 20;
const WEEK_MS = 7 * 24 * 60 * 60_000;

/** What the holder of an invitation can do. A guesser can do nothing. */
export function invitationTests(
  deployed: () => {
    base: string;
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    foreignId: string;
    mailbox: Mailbox;
    forgetTries: () => Promise<unknown>;
    database: Pick<TestDatabase, 'query'>;
  },
): void {
  /** Only these tests use this inviter, because the invitations of one person are limited. */
  let inviter: BrowserSession;
  beforeAll(async () => {
    const { base, operator, foreignId, mailbox, forgetTries } = deployed();
    await forgetTries();
    const email = 'foreign-owner@example.com';
    inviter = await join(base, await invite(operator, { tenantId: foreignId, email, role: 'owner', mailbox }), email);
  });
  const invited = (email: string) => {
    const { foreignId, mailbox } = deployed();
    return invite(inviter, { tenantId: foreignId, email, role: 'admin', mailbox });
  };
  const look = (link: string, from: string) =>
    new BrowserSession(deployed().base, from).post(`${API}/invitation/look`, { secret: secretOf(link) });

  it('an invitation is for its address: another person who is signed in cannot take it', async () => {
    const { of, foreignId } = deployed();
    const link = await invited('wanted@example.com');
    const taken = await of('viewer').post(`${API}/invitation/accept`, { secret: secretOf(link) });
    expect(taken.status).toBe(403);
    expect((await of('viewer').get(`${API}/tenants/${foreignId}/keys`)).status).toBe(404);
    // It was not used up.
    const { json } = await look(link, '127.3.0.1');
    expect(json).toMatchObject({ email: 'wanted@example.com', role: 'admin', tenantName: 'Other' });
  });

  it('an invitation works until its last second, and then neither its page nor its list has it', async () => {
    const { base, of, foreignId, database } = deployed();
    const email = 'late@example.com';
    const link = await invited(email);
    const secret = secretOf(link);
    const expireIn = (span: string) =>
      database.query(`UPDATE console.invitation SET expires_at = now() + $2::interval WHERE email = $1`, [email, span]);
    const listed = async () => {
      const { invitations } = (await inviter.get(`${API}/tenants/${foreignId}/members`)).json as {
        invitations: { email: string }[];
      };
      return invitations.some((one) => one.email === email);
    };
    await expireIn('1 minute');
    expect((await look(link, '127.3.2.1')).json).toMatchObject({ email });
    expect(await listed()).toBe(true);
    await expireIn('-1 second');
    const account = { secret, name: 'Late', email, password: PASSWORD };
    for (const answer of [
      await look(link, '127.3.2.1'),
      await new BrowserSession(base, '127.3.2.2').post(`${API}/invitation/accept-as-new`, account),
      await of('viewer').post(`${API}/invitation/accept`, { secret }),
    ])
      expect([answer.status, answer.json.error.code]).toEqual([404, 'invitation_invalid']);
    expect(await listed()).toBe(false);
    const made = await database.query(`SELECT 1 FROM console."user" WHERE email = $1`, [email]);
    expect(made).toEqual([]);
  });

  it.each(['removed', 'demoted'] as const)('an invitation ends when its maker is %s', async (end) => {
    const { base, of, foreignId, mailbox } = deployed();
    const makersEmail = `maker-${end}@example.com`;
    const maker = await join(base, await invited(makersEmail), makersEmail);
    const email = `accomplice-of-${end}@example.com`;
    const link = await invite(maker, { tenantId: foreignId, email, role: 'admin', mailbox });
    expect((await look(link, '127.3.4.1')).status).toBe(200);
    const path = `${API}/tenants/${foreignId}/members`;
    const { data } = (await inviter.get(path)).json as { data: { userId: string; email: string }[] };
    const { userId } = data.find((member) => member.email === makersEmail)!;
    const ended =
      end === 'removed'
        ? await inviter.send('DELETE', `${path}/${userId}`)
        : await inviter.send('PATCH', `${path}/${userId}`, { role: 'viewer' });
    expect(ended.status).toBeLessThan(300);
    const account = { secret: secretOf(link), name: 'Accomplice', email, password: PASSWORD };
    for (const answer of [
      await look(link, '127.3.4.1'),
      await new BrowserSession(base, '127.3.4.2').post(`${API}/invitation/accept-as-new`, account),
      await of('viewer').post(`${API}/invitation/accept`, { secret: account.secret }),
    ])
      expect([answer.status, answer.json.error.code]).toEqual([404, 'invitation_invalid']);
    const { invitations } = (await inviter.get(path)).json as { invitations: { email: string }[] };
    expect(invitations.map((one) => one.email)).not.toContain(email);
  });

  it('an invitation is promised for seven days', async () => {
    const { mailbox, foreignId } = deployed();
    const asked = { email: 'a-week@example.com', role: 'viewer' };
    const before = Date.now();
    const { json } = await inviter.post(`${API}/tenants/${foreignId}/invitations`, asked);
    const expiresAt = Date.parse((json as { expiresAt: string }).expiresAt);
    expect(expiresAt).toBeGreaterThanOrEqual(before + WEEK_MS);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + WEEK_MS);
    expect(mailbox.linkTo(asked.email)).toContain('/console/invitation#');
  });

  it.each([
    ['look', '127.3.1.1'],
    ['accept', '127.3.1.2'],
    ['accept-as-new', '127.3.1.3'],
  ])('after twenty tries of %s in a minute, an address tries no link any more', async (call, from) => {
    const { base, of } = deployed();
    const email = `guessed-by-${call}@example.com`;
    const link = await invited(email);
    // Only `accept` needs the session.
    const guesser = new BrowserSession(base, from);
    for (const [name, value] of of('viewer').cookies) guesser.cookies.set(name, value);
    const attempt = (path: string, secret: string, time: number) => {
      const account = { name: 'Guesser', email, password: PASSWORD };
      const body = { secret, ...(path === 'accept-as-new' && account) };
      // A header of the client does not make it another address.
      const headers = { 'x-forwarded-for': `10.0.0.${time}`, 'x-tollgate-client': `10.0.1.${time}` };
      return guesser.post(`${API}/invitation/${path}`, body, headers);
    };
    for (let time = 1; time <= MAX_TRIES; time++) {
      const { status, json } = await attempt(call, 'x'.repeat(43), time);
      expect([time, status, json.error.code]).toEqual([time, 404, 'invitation_invalid']);
    }
    // Neither that call nor the others, also with the right secret.
    for (const path of [call, 'look', 'accept', 'accept-as-new']) {
      const { status, json, headers } = await attempt(path, secretOf(link), 0);
      expect([path, status, json.error.code]).toEqual([path, 429, 'rate_limited']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    // Other addresses try on, and the invitation was not used up.
    expect((await look(link, '127.3.1.4')).json).toMatchObject({ email });
  });
}
