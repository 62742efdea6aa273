import { newId } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { operator as operatorApi } from '../../e2e/deployment';
import { useDataDirectory } from '../../e2e/standalone-process';
import { BrowserSession, type Reply } from '../running/browser';
import { startConsole, type RunningConsole } from '../running/running-console';
import { accessTests } from './access.part';
import { accountTriesTests } from './account-tries.part';
import { answerTests } from './answers.part';
import { bookTests } from './books.part';
import { erasureTests } from './erasure.part';
import { fixationTests } from './fixation.part';
import { foreignIdTests } from './foreign-ids.part';
import { invitationTests } from './invitations.part';
import { startIssuer, type Issuer } from '../running/issuer';
import { keyTests } from './keys.part';
import { liveTests } from './live.part';
import { Mailbox } from '../running/mailbox';
import { CLIENT_SECRET, PEOPLE_AT_ISSUER, signInTests } from './sign-in.part';
import { recoveryTests } from './recovery.part';
import { malformedTests } from './malformed.part';
import { promotedTests } from './promoted.part';
import { renewalTests } from './renewal.part';
import { requestTests } from './requests.part';
import { revokedTests } from './revoked.part';
import { writeTests } from './writes.part';
import { API, invite, join, PASSWORD, type Role, ROLES, secretOf, signIn } from '../running/people';

// Before the database is dropped.
afterAll(async () => {
  await console_?.stop();
  await Promise.all([mailbox?.close(), issuer?.stop()]);
});
const database = useTestDatabase();
const directory = useDataDirectory();
let console_: RunningConsole;
let operator: BrowserSession;
let tenantId: string;
let foreignId: string;
let mailbox: Mailbox;
let issuer: Issuer;
const people = new Map<Role, BrowserSession>();
/**
 * Every person of the tests calls from one address, so the number of tries is not what is tested. Nor is that each code
 * of an authenticator works once: the tests need several within 30 s.
 */
const forgetTries = async () => {
  await database.query('DELETE FROM console."rateLimit"');
  await database.query('UPDATE console."twoFactor" SET used_step = NULL');
};

/** What the pages of the console answered while it was turned off. */
const whileOff: { page: string; status: number; code: string }[] = [];

/** The answer to whoever uses the link of the first operator too late. */
let afterTenMinutes: Reply;

beforeAll(async () => {
  const off = await startConsole({
    DATABASE_URL: database.url,
    TOLLGATE_DATA_DIR: directory.path,
    TOLLGATE_CONSOLE: 'false',
  });
  for (const page of ['/console', '/console/', `${API}/me`, `${API}/sign-in-options`]) {
    const { status, json } = await new BrowserSession(off.base).get(page);
    whileOff.push({ page, status, code: json.error.code });
  }
  expect(off.operatorLink).toBeNull();
  // The settings of the console name a tenant.
  const make = async (name: string) =>
    (await operatorApi(off).post<{ data: { id: string } }>('/_operator/v1/tenants', { name })).body.data.id;
  [tenantId, foreignId] = [await make('Acme'), await make('Other')];
  await off.stop();
  [mailbox, issuer] = await Promise.all([Mailbox.open(), startIssuer(PEOPLE_AT_ISSUER, CLIENT_SECRET)]);
  console_ = await startConsole({
    DATABASE_URL: database.url,
    TOLLGATE_DATA_DIR: directory.path,
    TOLLGATE_SMTP_URL: mailbox.url,
    TOLLGATE_OIDC_ISSUER: issuer.url,
    TOLLGATE_OIDC_CLIENT_ID: 'tollgate',
    TOLLGATE_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    TOLLGATE_OIDC_DOMAINS: 'example.com',
    TOLLGATE_OIDC_ROLES:
      `ops=operator,acme-viewers=${tenantId}:viewer,acme-admins=${tenantId}:admin,` + `unknown=${newId('ten')}:owner`,
  });
  const shift = (span: string) =>
    database.query(`UPDATE console.invitation SET expires_at = expires_at + $1::interval WHERE operator`, [span]);
  const late = { name: 'Late', email: 'late@example.com', password: PASSWORD };
  await shift('-10 minutes');
  afterTenMinutes = await new BrowserSession(console_.base).post(`${API}/invitation/accept-as-new`, {
    secret: secretOf(console_.operatorLink!),
    ...late,
  });
  await shift('10 minutes');
  operator = await join(console_.base, console_.operatorLink!, 'operator@example.com', 'Grace');
  for (const role of ROLES) {
    await forgetTries();
    const email = `${role}@example.com`;
    const link = await invite(operator, { tenantId, email, role, mailbox });
    people.set(role, await join(console_.base, link, email, role));
  }
  await forgetTries();
});

const of = (role: Role) => people.get(role)!;

accessTests(() => ({ base: console_.base, operator, of, tenantId, foreignId, database }));

foreignIdTests(() => ({ operator, of, tenantId, foreignId, database }));
signInTests(() => ({
  ...{ base: console_.base, stderr: () => console_.process.stderr, operator, of, tenantId },
  ...{ mailbox, issuer, database, forgetTries },
}));
accountTriesTests(() => ({ base: console_.base, of, tenantId, mailbox, database, forgetTries }));
malformedTests(() => ({ operator, tenantId, forgetTries }));
promotedTests(() => ({ of, tenantId, database }));
renewalTests(() => ({ base: console_.base, tenantId, database, forgetTries }));
fixationTests(() => ({ base: console_.base, operator, tenantId, mailbox, forgetTries }));
invitationTests(() => ({ base: console_.base, operator, of, foreignId, mailbox, forgetTries, database }));
liveTests(() => ({
  ...{ base: console_.base, operator, of, tenantId, inferenceUrl: console_.inferenceUrl },
  ...{ database, forgetTries },
}));
bookTests(() => ({
  ...{ base: console_.base, operator, of, tenantId, foreignId },
  ...{ mailbox, database, forgetTries },
}));
requestTests(() => ({ operator, of, tenantId, inferenceUrl: console_.inferenceUrl }));
writeTests(() => ({ operator, base: console_.base, mailbox, database, forgetTries }));
recoveryTests(() => ({
  ...{ base: console_.base, stderr: () => console_.process.stderr, operator, of, tenantId, foreignId },
  ...{ mailbox, database, forgetTries },
}));
erasureTests(() => ({ base: console_.base, operator, tenantId, mailbox, database, forgetTries }));
keyTests(() => ({ of, tenantId, inferenceUrl: console_.inferenceUrl, database }));
revokedTests(() => ({ of, tenantId, managementUrl: console_.managementUrl }));

describe('sign-in', () => {
  it('the link of the first operator works for ten minutes', () => {
    expect([afterTenMinutes.status, afterTenMinutes.json.error.code]).toEqual([404, 'invitation_invalid']);
  });

  it('the link of the first operator works once, and no later start prints another', async () => {
    const again = await operator.post(`${API}/invitation/look`, { secret: secretOf(console_.operatorLink!) });
    expect([again.status, again.json.error.code]).toEqual([404, 'invitation_invalid']);
    const [{ count }] = (await database.query<{ count: string }>('SELECT count(*) FROM console.operator')) as [
      { count: string },
    ];
    expect(count).toBe('1');
  });

  it('the database has no password, no secret of a link, and no token in plain text', async () => {
    const made = await of('owner').post(`${API}/tenants/${tenantId}/tokens`, { name: 'p', scopes: ['keys:read'] });
    const secrets = [PASSWORD, secretOf(console_.operatorLink!), made.json.token as string];
    for (const schema of ['console', 'auth']) {
      const tables = await database.query<{ name: string }>(
        'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1',
        [schema],
      );
      for (const { name } of tables) {
        const rows = await database.query(`SELECT t::text FROM ${schema}."${name}" t`);
        for (const secret of secrets) expect(JSON.stringify(rows)).not.toContain(secret);
      }
    }
    for (const secret of secrets) expect(console_.process.stderr).not.toContain(secret);
  });

  it('no answer shows the secret of a session, and the cookie is out of reach of scripts and other sites', async () => {
    await forgetTries();
    const browser = new BrowserSession(console_.base);
    const credentials = { email: 'viewer@example.com', password: PASSWORD };
    const answer = await browser.post(`${API}/auth/sign-in/email`, credentials);
    const [cookie = ''] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^tollgate\.session_token=.*; Path=\/; HttpOnly; SameSite=Lax$/);
    const secret = decodeURIComponent(cookie.split(';')[0]!.split('=')[1]!).split('.')[0]!;
    expect(answer.text).not.toContain(secret);
    for (const path of ['me', 'sessions', 'auth/get-session', 'auth/list-sessions'])
      expect((await browser.get(`${API}/${path}`)).text).not.toContain(secret);
  });

  it('a session that is ended on the list is refused at once, and nobody ends the sessions of others', async () => {
    await forgetTries();
    const other = new BrowserSession(console_.base);
    await signIn(other, 'billing@example.com');
    const { data } = (await other.get(`${API}/sessions`)).json as { data: { id: string; isCurrent: boolean }[] };
    const { id } = data.find(({ isCurrent }) => isCurrent)!;
    expect((await of('owner').send('DELETE', `${API}/sessions/${id}`)).status).toBe(404);
    expect((await other.get(`${API}/me`)).status).toBe(200);
    expect((await of('billing').send('DELETE', `${API}/sessions/${id}`)).status).toBe(204);
    expect((await other.get(`${API}/me`)).status).toBe(401);
  });

  it('after ten tries in a minute from an address, passwords are not checked any more', async () => {
    await forgetTries();
    const browser = new BrowserSession(console_.base);
    const attempt = async (time: number) => {
      const wrong = { email: 'owner@example.com', password: `wrong password ${time}` };
      // A header of the client does not make it another address.
      const headers = { 'x-forwarded-for': `10.0.0.${time}`, 'x-tollgate-client': `10.0.1.${time}` };
      return (await browser.post(`${API}/auth/sign-in/email`, wrong, headers)).status;
    };
    expect(await attempt(1)).toBe(401);
    // The next eight, which a slow machine could not do in the same minute.
    await database.query(`UPDATE console."rateLimit" SET count = 9`);
    expect([await attempt(2), await attempt(3), await attempt(4)]).toEqual([401, 429, 429]);
    await forgetTries();
  });

  it.each([
    ['two-factor/verify-totp', { code: '000000' }],
    ['two-factor/verify-backup-code', { code: 'wrong' }],
    ['two-factor/enable', { password: 'wrong password' }],
    ['passkey/verify-authentication', { response: {} }],
    ['change-password', { currentPassword: 'wrong password', newPassword: 'another password' }],
  ])('after ten tries in a minute from an address, %s is not tried any more', async (call, wrong) => {
    await forgetTries();
    const browser = of('viewer');
    const attempt = async () => (await browser.post(`${API}/auth/${call}`, wrong)).status;
    expect([400, 401, 403]).toContain(await attempt());
    // The next eight, which a slow machine could not do in the same minute.
    await database.query(`UPDATE console."rateLimit" SET count = 9`);
    expect([400, 401, 403]).toContain(await attempt());
    expect([await attempt(), await attempt()]).toEqual([429, 429]);
    expect((await browser.get(`${API}/me`)).status).toBe(200);
    await forgetTries();
  });

  it('nobody can sign up, and the calls of the library that are not listed do not exist', async () => {
    const browser = new BrowserSession(console_.base);
    const account = { name: 'x', email: 'x@example.com', password: PASSWORD };
    expect((await browser.post(`${API}/auth/sign-up/email`, account)).status).toBe(404);
    for (const path of ['get-session', 'list-sessions', 'ok', 'error', 'reference', '../me/../auth/get-session'])
      expect((await of('owner').get(`${API}/auth/${path}`)).status).toBe(404);
  });

  it('a sign-in does not lead to another site', async () => {
    await forgetTries();
    const browser = new BrowserSession(console_.base);
    const credentials = { email: 'viewer@example.com', password: PASSWORD, callbackURL: 'https://evil.example/' };
    const answer = await browser.post(`${API}/auth/sign-in/email`, credentials);
    expect([answer.status, answer.headers.get('location')]).toEqual([200, null]);
  });
});

answerTests(() => ({ base: console_.base, operator, of, tenantId }));

it('turned off, nothing of the console is reachable and its schema is not needed', () => {
  for (const { page, status, code } of whileOff) expect([page, status, code]).toEqual([page, 404, 'route_not_found']);
  expect(whileOff).toHaveLength(4);
});
