import { hashInvitationSecret, newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { BrowserSession, type Reply } from '../running/browser';
import { API, PASSWORD, secretOf, signIn } from '../running/people';
import { type Deployed, NEXT_PASSWORD, recovering } from './recovering';
import { takeoverTests } from './takeover.part';
import { totpOf } from '../running/totp';

/** The links by mail that work for one person at a time. */
const MAX_MAILED = 3;

/** A person who forgot the password. */
export function recoveryTests(deployed: () => Deployed): void {
  const helpers = recovering(deployed);
  const { anybody, member, idOf, mailsTo, mailedLink, use, code, linkFor, look, addTotp, addPasskey, proofsOf } =
    helpers;

  it('a mailed link sets a password once, ends sessions and passkeys, and leaves the second factor', async () => {
    const { base, operator } = deployed();
    const email = 'forgetful@example.com';
    const browser = await member(email);
    const totpURI = await addTotp(browser);
    await addPasskey(email);
    const other = await mailedLink(email);
    const link = await mailedLink(email);
    expect(link).toMatch(new RegExp(`^${base}/console/reset-password#[\\w-]{43}$`));
    expect(await look(link)).toEqual({ email, removesTotp: false });
    // A sign-in that waits for its code.
    const waiting = new BrowserSession(base);
    await waiting.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });

    const used = await use(link);
    expect([used.status, used.json]).toEqual([200, { email, removesTotp: false }]);
    // No session: the browser is only a known one, whose wrong passwords are counted apart.
    expect(used.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^tollgate\.known=[^;]+; Max-Age=\d+; Path=\/; /),
    ]);
    expect((await browser.get(`${API}/me`)).status).toBe(401);
    expect((await waiting.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) })).status).toBe(401);
    for (const again of [link, other]) expect(code(await use(again))).toEqual([404, 'recovery_invalid']);
    const fresh = new BrowserSession(base);
    const credentials = { email, password: NEXT_PASSWORD };
    expect((await fresh.post(`${API}/auth/sign-in/email`, credentials)).json).toMatchObject({
      twoFactorRedirect: true,
    });
    expect((await fresh.get(`${API}/me`)).status).toBe(401);
    expect((await fresh.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpURI) })).status).toBe(200);
    const { data } = (await operator.get(`${API}/operator/audit?author=${email}&action=password.reset`)).json;
    const before = { passkeys: 1, totp: false };
    expect(data).toMatchObject([{ action: 'password.reset', target: await idOf(email), before, after: null }]);
    expect(await proofsOf(email)).toEqual({ proven: true, asks: true, totp: 1, passkeys: 0 });
    const isTold = ({ to, text }: { to: string[]; text: string }) =>
      to.includes(email) && text.includes('A link has set a new password');
    await eventually(() => expect(deployed().mailbox.received.filter(isTold)).toHaveLength(1));
  });

  it('every address gets the same answer, and only that of an account with a password gets a mail', async () => {
    const { database, mailbox } = deployed();
    await member('known@example.com');
    const user = 'INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ($1, $1, $2, true)';
    await database.query(user, ['by-provider', 'by-provider@example.com']);
    const ask = async (email: string) => {
      const { status, text, headers } = await anybody().post(`${API}/recovery/request`, { email });
      return [status, text, headers.get('content-type'), headers.getSetCookie()];
    };
    const [known, ...others] = [
      await ask('known@example.com'),
      await ask('unknown@example.com'),
      await ask('by-provider@example.com'),
    ];
    expect(others).toEqual([known, known]);
    expect(known[0]).toBe(204);
    await eventually(() => expect(mailsTo('known@example.com').length).toBe(1));
    // Asked for after the others.
    await mailedLink('known@example.com');
    const addresses = mailbox.received.flatMap(({ to }) => to);
    expect(addresses).not.toContain('unknown@example.com');
    expect(addresses).not.toContain('by-provider@example.com');
    const made = 'SELECT count(*)::int AS count FROM console.recovery WHERE user_id = $1';
    expect(await database.query(made, ['by-provider'])).toEqual([{ count: 0 }]);
    await database.query(`DELETE FROM console."user" WHERE id = 'by-provider'`);
  });

  it('no more than three links by mail work for a person, and an address asks twenty times in a minute', async () => {
    const { database, mailbox } = deployed();
    const email = 'flooded@example.com';
    await member(email);
    for (let time = 0; time < MAX_MAILED; time++) await mailedLink(email);
    const caller = anybody();
    const attempt = async () => (await caller.post(`${API}/recovery/request`, { email })).status;
    const statuses: number[] = [];
    for (let time = 0; time < 21; time++) statuses.push(await attempt());
    expect([statuses.filter((status) => status === 204).length, statuses.at(-1)]).toEqual([20, 429]);
    // Asked for after all of those.
    await member('after-the-flood@example.com');
    await mailedLink('after-the-flood@example.com');
    expect(mailsTo(email)).toHaveLength(MAX_MAILED);
    // When they have expired, there is room again.
    await database.query(`UPDATE console.recovery SET expires_at = now() - interval '1 second'`);
    expect(code(await use(mailbox.linkTo(email)))).toEqual([404, 'recovery_invalid']);
    expect((await use(await mailedLink(email))).status).toBe(200);
  });

  it('the secret of a link is in its fragment and in the mail only', async () => {
    const { database, stderr } = deployed();
    const email = 'secretive@example.com';
    await member(email);
    const secret = secretOf(await mailedLink(email));
    expect((await linkFor(deployed().of('owner'), email)).json.link).toMatch(/\/console\/reset-password#[\w-]{43}$/);
    const rows = await database.query('SELECT * FROM console.recovery WHERE user_id = $1', [await idOf(email)]);
    expect(rows).toHaveLength(2);
    expect(JSON.stringify(rows)).toContain(hashInvitationSecret(secret));
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(JSON.stringify(await database.query('SELECT * FROM auth.audit_log'))).not.toContain(secret);
    expect(stderr()).not.toContain(secret);
  });

  it('an owner creates links for people of its tenant only, and no operator is among them', async () => {
    const { operator, of, tenantId, foreignId, database } = deployed();
    const email = 'elsewhere-too@example.com';
    await member(email);
    const userId = await idOf(email);
    const made = await linkFor(of('owner'), email);
    expect(made.status).toBe(201);
    expect(code(await linkFor(of('admin'), email))).toEqual([403, 'forbidden']);
    const join_ = (id: string) =>
      database.query(`INSERT INTO console.membership (user_id, tenant_id, role) VALUES ($1, $2, 'viewer')`, [
        userId,
        id,
      ]);
    const operates = ['operator', 'provider_operator'].map((table) => ({
      enter: () => database.query(`INSERT INTO console.${table} (user_id) VALUES ($1)`, [userId]),
      leave: () => database.query(`DELETE FROM console.${table} WHERE user_id = $1`, [userId]),
    }));
    const belongs = {
      enter: () => join_(foreignId),
      leave: () =>
        database.query('DELETE FROM console.membership WHERE user_id = $1 AND tenant_id = $2', [userId, foreignId]),
    };
    for (const { enter, leave } of [...operates, belongs]) {
      await enter();
      expect(code(await linkFor(of('owner'), email))).toEqual([403, 'forbidden']);
      // A link that was created before does not open what the person has got since.
      expect(code(await use(made.json.link as string))).toEqual([404, 'recovery_invalid']);
      await leave();
    }
    await belongs.enter();
    const byOperator = await linkFor(operator, email);
    expect(byOperator.status).toBe(201);
    expect((await use(byOperator.json.link as string)).status).toBe(200);
    const rows = (await of('owner').get(`${API}/tenants/${tenantId}/audit?action=recovery.create`)).json.data;
    expect(rows).toEqual(expect.arrayContaining([expect.objectContaining({ target: userId, after: { name: email } })]));
  });

  it('the session of an operator or owner alone cannot create a link, which would open an account', async () => {
    const { operator, of, tenantId, database } = deployed();
    const email = 'by-session-only@example.com';
    await member(email);
    const userId = await idOf(email);
    for (const [by, path] of [
      [operator, `${API}/operator/people/${userId}/recovery`],
      [of('owner'), `${API}/tenants/${tenantId}/members/${userId}/recovery`],
    ] as const) {
      expect(code(await by.post(path))).toEqual([400, 'invalid_request']);
      expect(code(await by.post(path, { password: 'wrong password' }))).toEqual([401, 'invalid_credentials']);
    }
    expect(await database.query('SELECT 1 FROM console.recovery WHERE user_id = $1', [userId])).toEqual([]);
  });

  it('nobody creates a link for itself, for a stranger, or for a person without a password', async () => {
    const { operator, of, database, tenantId } = deployed();
    expect(code(await linkFor(of('owner'), 'owner@example.com'))).toEqual([403, 'forbidden']);
    const own = `${API}/operator/people/${await idOf('operator@example.com')}`;
    const proof = { password: PASSWORD };
    expect(code(await operator.post(`${own}/recovery`, proof))).toEqual([403, 'forbidden']);
    const stranger = `${API}/operator/people/${newId('msg')}/recovery`;
    expect(code(await operator.post(stranger, proof))).toEqual([404, 'not_found']);
    const user = 'INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ($1, $1, $2, true)';
    await database.query(user, ['sso', 'sso@example.com']);
    await database.query(`INSERT INTO console.membership (user_id, tenant_id, role) VALUES ('sso', $1, 'viewer')`, [
      tenantId,
    ]);
    for (const by of [of('owner'), operator])
      expect(code(await linkFor(by, 'sso@example.com'))).toEqual([409, 'no_password']);
    await database.query(`DELETE FROM console."user" WHERE id = 'sso'`);
    await signIn(new BrowserSession(deployed().base), 'owner@example.com');
  });

  it('a mail that the server refuses uses up no link', async () => {
    const { mailbox, stderr, database } = deployed();
    const email = 'full-mailbox@example.com';
    await member(email);
    mailbox.refused.add(email);
    const failures = () => stderr().split('a link for a password was not mailed').length - 1;
    const before = failures();
    for (let time = 0; time < MAX_MAILED; time++) await anybody().post(`${API}/recovery/request`, { email });
    await eventually(() => expect(failures() - before).toBe(MAX_MAILED));
    expect(await database.query('SELECT 1 FROM console.recovery WHERE user_id = $1', [await idOf(email)])).toEqual([]);
    mailbox.refused.delete(email);
    await mailedLink(email);
  });

  it('a person makes twenty links in a minute, and tries of links leave room for requests', async () => {
    const { tenantId, database } = deployed();
    const busy = await member('busy@example.com', 'owner');
    const statusesOf = async (attempt: () => Promise<Reply>) => {
      const statuses: number[] = [];
      for (let time = 0; time < 21; time++) statuses.push((await attempt()).status);
      return [...new Set(statuses)];
    };
    const make = () => busy.post(`${API}/tenants/${tenantId}/members/nobody/recovery`, { password: PASSWORD });
    expect(await statusesOf(make)).toEqual([404, 429]);
    // An operator has no further ones on People. One by a group is never the last operator of another test.
    const byGroup = 'INSERT INTO console.provider_operator (user_id) VALUES ($1)';
    await database.query(byGroup, [await idOf('busy@example.com')]);
    expect((await busy.post(`${API}/operator/people/nobody/recovery`, { password: PASSWORD })).status).toBe(429);
    const caller = anybody();
    const secret = 'x'.repeat(43);
    expect(await statusesOf(() => caller.post(`${API}/recovery/look`, { secret }))).toEqual([404, 429]);
    expect((await caller.post(`${API}/recovery/request`, { email: 'nobody@example.com' })).status).toBe(204);
  });

  takeoverTests(deployed, helpers);
}
