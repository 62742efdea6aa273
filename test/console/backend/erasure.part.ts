import { eventually, type TestDatabase } from '@tollgate/testing';
import { BrowserSession, type Reply } from '../running/browser';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, PASSWORD, type Role } from '../running/people';

/** A stream never takes this long to end, however slow the machine is. */
const ENDS_WITHIN_MS = 60_000;
const NAME = 'Zebedee Quux';

/** The end of an account. */
export function erasureTests(
  deployed: () => {
    base: string;
    operator: BrowserSession;
    tenantId: string;
    mailbox: Mailbox;
    database: Pick<TestDatabase, 'query'>;
    forgetTries: () => Promise<unknown>;
  },
): void {
  beforeEach(() => deployed().forgetTries());
  const member = async (email: string, role: Role, tenantId = deployed().tenantId) => {
    const { base, operator, mailbox } = deployed();
    return join(base, await invite(operator, { tenantId, email, role, mailbox }), email, NAME);
  };
  const idOf = async (email: string) =>
    (await deployed().database.query<{ id: string }>('SELECT id FROM console."user" WHERE email = $1', [email]))[0]!.id;
  const erase = (browser: BrowserSession, email: string, password = PASSWORD) =>
    browser.post(`${API}/account/erase`, { email, password });
  const eraseOther = (userId: string, password = PASSWORD) =>
    deployed().operator.post(`${API}/operator/people/${userId}/erase`, { password });
  const code = ({ status, json }: Reply) => [status, json?.error?.code ?? null];
  /** Where a text is, in all tables of the services. */
  const placesOf = async (text: string): Promise<string[]> => {
    const { database } = deployed();
    const tables = await database.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_schema IN ('console', 'auth', 'billing', 'metering') AND table_type = 'BASE TABLE'`,
    );
    const found = await Promise.all(
      tables.map(async ({ name }) => {
        const sql = `SELECT 1 FROM ${name} t WHERE strpos(lower(t::text), lower($1)) > 0 LIMIT 1`;
        return (await database.query(sql, [text])).length > 0 ? [name] : [];
      }),
    );
    return found.flat();
  };
  /** An erasure keeps the address for a minute, and the services are asked once more. This ends the minute. */
  const completed = async () => {
    await deployed().database.query('UPDATE console.erasure SET due_at = now()');
    await eventually(async () => expect(await deployed().database.query('SELECT 1 FROM console.erasure')).toEqual([]));
  };

  it('a person erases its account by password and address, and is nowhere by name', async () => {
    const { tenantId, operator, database, base } = deployed();
    const email = 'leaving@example.com';
    const browser = await member(email, 'owner');
    const userId = await idOf(email);
    const tenant = `${API}/tenants/${tenantId}`;
    // What names it: keys, budgets, invitations and sessions.
    expect((await browser.post(`${tenant}/keys`, { name: 'k', owner: email })).status).toBe(201);
    expect((await browser.send('PUT', `${tenant}/budget`, { budgetCents: 70 })).status).toBeLessThan(300);
    await browser.post(`${tenant}/invitations`, { email: 'invited-by-leaving@example.net', role: 'viewer' });
    await operator.post(`${tenant}/invitations`, { email, role: 'admin' });
    await operator.send('PATCH', `${tenant}/members/${userId}`, { role: 'admin' });
    const second = new BrowserSession(base);
    await second.post(`${API}/auth/sign-in/email`, { email, password: PASSWORD });
    const { data } = (await browser.get(`${API}/sessions`)).json as { data: { id: string; isCurrent: boolean }[] };
    await browser.send('DELETE', `${API}/sessions/${data.find(({ isCurrent }) => !isCurrent)!.id}`);
    expect((await placesOf(email)).sort()).toEqual(
      expect.arrayContaining(['auth.audit_log', 'auth.credential', 'billing.audit_log', 'console."user"']),
    );
    const rowsOf = async () =>
      (await operator.get(`${API}/operator/audit?author=${userId}&limit=200`)).json.data as {
        id: string;
        by: { id: string; name: string | null; address: string | null };
      }[];
    const before = await rowsOf();
    const stream = await browser.stream(`${tenant}/live/overview`, ENDS_WITHIN_MS);

    expect(code(await erase(browser, email, 'wrong password'))).toEqual([401, 'invalid_credentials']);
    expect(code(await erase(browser, 'other@example.com'))).toEqual([400, 'invalid_request']);
    const erased = await erase(browser, email.toUpperCase());
    expect([erased.status, erased.text]).toEqual([204, '']);
    expect((await browser.get(`${API}/me`)).status).toBe(401);
    await stream.text();
    expect([await placesOf(email), await placesOf(NAME)]).toEqual([['console.erasure'], []]);
    await completed();
    expect(await placesOf(email)).toEqual([]);
    const after = await rowsOf();
    expect(after.slice(1).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(after[0]).toMatchObject({ action: 'account.erase', target: userId });
    expect(after.map(({ by }) => [by.id, by.name, by.address])).toEqual(after.map(() => [userId, null, null]));
    for (const table of ['session', 'account', 'passkey', 'twoFactor'])
      expect(await database.query(`SELECT 1 FROM console."${table}" WHERE "userId" = $1`, [userId])).toEqual([]);
    for (const table of ['membership', 'recovery'])
      expect(await database.query(`SELECT 1 FROM console.${table} WHERE user_id = $1`, [userId])).toEqual([]);
  });

  it('a person without a password erases its account only just after a sign-in', async () => {
    const { database } = deployed();
    const email = 'by-provider-only@example.com';
    const browser = await member(email, 'viewer');
    const userId = await idOf(email);
    await database.query('UPDATE console."account" SET "password" = NULL WHERE "userId" = $1', [userId]);
    await database.query(
      `UPDATE console."session" SET "createdAt" = now() - interval '11 minutes' WHERE "userId" = $1`,
      [userId],
    );
    expect(code(await erase(browser, email, ''))).toEqual([403, 'sign_in_again']);
    await database.query(`UPDATE console."session" SET "createdAt" = now() WHERE "userId" = $1`, [userId]);
    expect((await erase(browser, email, '')).status).toBe(204);
  });

  it('the last owner of a tenant and the last operator stay, and an error says what to do first', async () => {
    const { operator } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Owned once' })).json as { id: string };
    const email = 'only-owner@example.com';
    const owner = await member(email, 'owner', id);
    const refused = await erase(owner, email);
    expect(code(refused)).toEqual([409, 'last_owner']);
    expect(refused.json.error.message).toContain('Owned once');
    expect(code(await eraseOther(await idOf(email)))).toEqual([409, 'last_owner']);
    expect((await owner.get(`${API}/me`)).status).toBe(200);
    expect(code(await erase(operator, 'operator@example.com'))).toEqual([409, 'last_operator']);
    expect(code(await eraseOther(await idOf('operator@example.com')))).toEqual([403, 'forbidden']);
    // With another owner, it may go.
    await member('next-owner@example.com', 'owner', id);
    expect((await erase(owner, email)).status).toBe(204);
  });

  it('an operator finds a person and erases it, and its streams end', async () => {
    const { operator, tenantId } = deployed();
    const email = 'found-and-erased@example.com';
    const browser = await member(email, 'admin');
    const find = async () => (await operator.get(`${API}/operator/people?search=FOUND-and`)).json.data as object[];
    expect(await find()).toMatchObject([{ email, name: NAME, isOperator: false, hasPassword: true, tenants: 1 }]);
    const stream = await browser.stream(`${API}/tenants/${tenantId}/live/tokens`, ENDS_WITHIN_MS);
    const userId = await idOf(email);
    // Whoever has only the session of an operator erases nobody.
    expect(code(await eraseOther(userId, 'wrong password'))).toEqual([401, 'invalid_credentials']);
    expect(code(await operator.post(`${API}/operator/people/${userId}/erase`))).toEqual([400, 'invalid_request']);
    expect((await operator.send('DELETE', `${API}/operator/people/${userId}`)).status).toBe(404);
    expect((await browser.get(`${API}/me`)).status).toBe(200);
    expect((await eraseOther(userId)).status).toBe(204);
    expect((await browser.get(`${API}/me`)).status).toBe(401);
    await stream.text();
    expect(await find()).toEqual([]);
    expect(code(await eraseOther(userId))).toEqual([404, 'not_found']);
    await completed();
    expect(await placesOf(email)).toEqual([]);
  });

  it('people are listed by address in pages', async () => {
    const { operator } = deployed();
    type People = { data: { email: string }[]; nextCursor: string | null };
    const emails: string[] = [];
    let after = '';
    for (;;) {
      const path = `${API}/operator/people?limit=3${after && `&after=${encodeURIComponent(after)}`}`;
      const { data, nextCursor } = (await operator.get(path)).json as People;
      emails.push(...data.map(({ email }) => email));
      if (nextCursor === null) break;
      after = nextCursor;
    }
    expect(emails).toEqual((await everybody()).map(({ email }) => email));
  });

  const everybody = () =>
    deployed().database.query<{ email: string }>('SELECT email FROM console."user" ORDER BY email');
}
