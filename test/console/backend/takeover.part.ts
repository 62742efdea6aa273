import { eventually } from '@tollgate/testing';
import { BrowserSession } from '../running/browser';
import { API, PASSWORD, type Role, signIn } from '../running/people';
import { type Deployed, NEXT_PASSWORD, type Recovering } from './recovering';
import { totpOf } from '../running/totp';

/** Nobody who had the account before a reset has it afterwards. */
export function takeoverTests(deployed: () => Deployed, helpers: Recovering): void {
  const { member, idOf, mailedLink, use, code, linkFor, look, addTotp, addPasskey, proofsOf } = helpers;

  it('the maker of a link for another person, who used it, cannot sign in after the next link by mail', async () => {
    const { of, base } = deployed();
    const email = 'taken-over@example.com';
    await addTotp(await member(email));
    await addPasskey(email);
    const made = (await linkFor(of('owner'), email)).json.link as string;
    expect(await look(made)).toEqual({ email, removesTotp: true });
    expect((await use(made)).status).toBe(200);
    expect(await proofsOf(email)).toEqual({ proven: false, asks: false, totp: 0, passkeys: 0 });
    // The maker enters the account, and adds what it could come back with.
    const maker = new BrowserSession(base);
    await signIn(maker, email, NEXT_PASSWORD);
    await addTotp(maker, NEXT_PASSWORD);
    await addPasskey(email);
    const mailed = await mailedLink(email);
    expect(await look(mailed)).toEqual({ email, removesTotp: true });
    expect((await use(mailed, PASSWORD)).status).toBe(200);
    expect(await proofsOf(email)).toEqual({ proven: true, asks: false, totp: 0, passkeys: 0 });
    // Proofs that are added from now on are the person's.
    expect(await look(await mailedLink(email))).toEqual({ email, removesTotp: false });
  });

  it('a link ends with the right of its maker, and with a change of the password', async () => {
    const { database, operator } = deployed();
    const [email, by] = ['linked-to@example.com', 'link-maker@example.com'];
    const browser = await member(email);
    const maker = await member(by, 'owner');
    const makerId = await idOf(by);
    const setRole = (role: Role) =>
      database.query('UPDATE console.membership SET role = $2 WHERE user_id = $1', [makerId, role]);
    const byOwner = (await linkFor(maker, email)).json.link as string;
    await setRole('admin');
    expect(code(await use(byOwner))).toEqual([404, 'recovery_invalid']);
    await setRole('owner');
    expect(await look(byOwner)).toMatchObject({ email });
    await database.query('INSERT INTO console.operator (user_id) VALUES ($1)', [makerId]);
    const path = `${API}/operator/people/${await idOf(email)}/recovery`;
    const byOperator = (await maker.post(path, { password: PASSWORD })).json.link as string;
    expect(await look(byOperator)).toMatchObject({ email });
    await database.query('DELETE FROM console.operator WHERE user_id = $1', [makerId]);
    expect(code(await use(byOperator))).toEqual([404, 'recovery_invalid']);

    const links = [
      byOwner,
      (await operator.post(path, { password: PASSWORD })).json.link as string,
      await mailedLink(email),
    ];
    for (const link of links) expect(await look(link)).toMatchObject({ email });
    const change = { currentPassword: PASSWORD, newPassword: NEXT_PASSWORD };
    expect((await browser.post(`${API}/auth/change-password`, change)).status).toBe(200);
    for (const link of links) expect(code(await use(link))).toEqual([404, 'recovery_invalid']);
  });

  it('an older session cannot add a passkey, which would open the account without password and code', async () => {
    const { database } = deployed();
    const email = 'left-open@example.com';
    const browser = await member(email);
    const options = () => browser.get(`${API}/auth/passkey/generate-register-options`);
    const add = () => browser.post(`${API}/auth/passkey/verify-registration`, { response: {}, name: 'mine' });
    const signedIn = (ago: string) =>
      database.query(
        `UPDATE console."session" SET "createdAt" = now() - $2::interval
         WHERE "userId" = (SELECT id FROM console."user" WHERE email = $1)`,
        [email, ago],
      );
    await signedIn('5 minutes');
    expect((await options()).status).toBe(200);
    await signedIn('10 minutes');
    for (const answer of [await options(), await add()]) expect(code(answer)).toEqual([403, 'sign_in_again']);
  });

  it.each(['password', 'code'])('a sign-in whose %s was checked before a reset opens nothing', async (proof) => {
    const { database, base } = deployed();
    const email = `overtaken-${proof}@example.com`;
    const browser = await member(email);
    const totpUri = proof === 'code' ? await addTotp(browser) : '';
    const late = new BrowserSession(base);
    const enter = () => late.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });
    if (proof === 'code') expect((await enter()).json).toMatchObject({ twoFactorRedirect: true });
    const link = await mailedLink(email);
    const userId = await idOf(email);
    const queued = (count: number) =>
      eventually(async () => {
        await database.query('SELECT pg_stat_clear_snapshot()');
        const sql = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
        expect(await database.query(sql)).toHaveLength(count);
      });
    // Both wait for the row of the person: the reset first, then the session, whose proof is checked by then.
    await database.query('BEGIN');
    await database.query('SELECT 1 FROM console."user" WHERE id = $1 FOR UPDATE', [userId]);
    const reset = use(link);
    await queued(1);
    const signedIn =
      proof === 'code' ? late.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpUri) }) : enter();
    await queued(2);
    await database.query('COMMIT');
    expect((await reset).status).toBe(200);
    const answer = await signedIn;
    expect([...code(answer), answer.headers.getSetCookie()]).toEqual([401, 'invalid_credentials', []]);
    expect(await database.query('SELECT 1 FROM console."session" WHERE "userId" = $1', [userId])).toEqual([]);
    await signIn(new BrowserSession(base), email, NEXT_PASSWORD);
  });

  it('a sign-in that waits for its code ends with a change of the password', async () => {
    const { base } = deployed();
    const email = 'waiting-for-a-code@example.com';
    const browser = await member(email);
    const totpUri = await addTotp(browser);
    const late = new BrowserSession(base);
    const entered = await late.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });
    expect(entered.json).toMatchObject({ twoFactorRedirect: true });
    const change = { currentPassword: PASSWORD, newPassword: NEXT_PASSWORD };
    expect((await browser.post(`${API}/auth/change-password`, change)).status).toBe(200);
    const proven = await late.post(`${API}/auth/two-factor/verify-totp`, { code: totpOf(totpUri) });
    expect([...code(proven), (await late.get(`${API}/me`)).status]).toEqual([401, 'invalid_credentials', 401]);
    expect((await browser.get(`${API}/me`)).status).toBe(200);
  });

  it('a sign-in whose password was checked before a change of it opens nothing', async () => {
    const { base, database } = deployed();
    const email = 'changed-meanwhile@example.com';
    const browser = await member(email);
    const late = new BrowserSession(base);
    // The late sign-in waits before its session, when its password is checked.
    await database.query(`
      CREATE FUNCTION console.wait_if_late() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$;
      CREATE TRIGGER late BEFORE INSERT ON console."session" FOR EACH ROW
        WHEN (NEW."userAgent" = 'late') EXECUTE FUNCTION console.wait_if_late()`);
    const waits = () =>
      eventually(async () => {
        const sql = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted`;
        expect(await database.query(sql)).toHaveLength(1);
      });
    await database.query('SELECT pg_advisory_lock(4711)');
    const answered = late.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD }, { 'user-agent': 'late' });
    await waits();
    const change = { currentPassword: PASSWORD, newPassword: NEXT_PASSWORD };
    expect((await browser.post(`${API}/auth/change-password`, change)).status).toBe(200);
    await database.query('SELECT pg_advisory_unlock(4711)');
    const answer = await answered;
    expect([...code(answer), answer.headers.getSetCookie()]).toEqual([401, 'invalid_credentials', []]);
    await database.query('DROP FUNCTION console.wait_if_late CASCADE');
    expect((await browser.get(`${API}/me`)).status).toBe(200);
    const userId = await idOf(email);
    expect(await database.query('SELECT 1 FROM console."session" WHERE "userId" = $1', [userId])).toHaveLength(1);
  });
}
