import { AUTH_CALLS } from '../../../apps/console/src/sign-in/auth-calls';
import { boundRoutes, matches } from './access.part';
import { BrowserSession, type Reply } from '../running/browser';
import { type Forged, ForgingSession } from './forging';
import { API, invite, join, PASSWORD } from '../running/people';
import {
  auth,
  idOf,
  type Made,
  NEXT_PASSWORD,
  NO_CHANGES,
  operated,
  OTHER,
  OWNER,
  STEPS,
  tenant,
} from './writes.fixture';

/**
 * The audit log has every write: who made it, once, and before it is in force. From another site, each write is refused
 * just before it succeeds on the console.
 */
export function writeTests(
  deployed: () => Pick<Made, 'operator' | 'base' | 'mailbox' | 'database' | 'forgetTries'>,
): void {
  const rowsOf = ({ headers }: Reply) =>
    deployed().database.query<{ action: string; author: string; kind: string }>(
      `SELECT action, author_name AS author, author_kind AS kind FROM auth.audit_log WHERE request_id = $1
       UNION ALL SELECT action, author_name, author_kind FROM billing.audit_log WHERE request_id = $1`,
      [headers.get('x-request-id')],
    );
  let made: Made;
  const forged: Forged[] = [];
  beforeAll(async () => {
    const { operator, base, mailbox, database, forgetTries } = deployed();
    const forging = (person: BrowserSession) => new ForgingSession(person, database, forged);
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Writing' })).json as { id: string };
    await forgetTries();
    const owner = await join(
      base,
      await invite(operator, { tenantId: id, email: OWNER, role: 'owner', mailbox }),
      OWNER,
    );
    made = {
      ...{ ...deployed(), forging, tenantId: id },
      ...{ operator: forging(operator), owner: forging(owner), other: forging(new BrowserSession(base)) },
      ...{ keyId: '', tokenId: '', totpUri: '', recoveryLink: '' },
    };
  });

  it.each(STEPS)(
    '%s leaves exactly one row in the audit log, %s by %s, and none from another site',
    async (route, action, author, write) => {
      await made.forgetTries();
      forged.length = 0;
      const answer = await write(made);
      expect(answer.status).toBeLessThan(300);
      expect(await rowsOf(answer)).toEqual([{ action, author, kind: 'person' }]);
      const refused = forged.filter(({ method, path }) => matches(route, method, path));
      expect(refused).toHaveLength(2);
      for (const one of refused) expect(await rowsOf(one.answer)).toEqual([]);
    },
  );

  it('writes that change nothing, or only a session, are refused from another site, too', async () => {
    const { owner, tenantId } = made;
    const fields = { email: OWNER, password: PASSWORD, secret: 'x'.repeat(43), code: '123456', response: {} };
    for (const route of NO_CHANGES) {
      const [method = '', path = ''] = route.replace(':tenantId', tenantId).split(' ');
      await owner.forge(method, `${API}/${path}`, fields);
    }
    expect((await owner.get(`${API}/me`)).status).toBe(200);
  });

  it('the table above has every write of the backend', () => {
    const calls = [...AUTH_CALLS].map((call) => call.replace(' /', ' auth/'));
    const writes = [...boundRoutes().filter((route) => !/^(GET|ALL) /.test(route)), ...calls].filter(
      (route) => !route.startsWith('GET '),
    );
    expect(writes.length).toBeGreaterThan(30);
    const named = new Set([...STEPS.map(([route]) => route), ...NO_CHANGES]);
    expect(writes.filter((route) => !named.has(route))).toEqual([]);
    expect([...named].filter((route) => !writes.includes(route))).toEqual([]);
  });

  it('what is refused leaves none', async () => {
    await made.forgetTries();
    for (const refused of [
      await auth(made.other, 'change-password', { currentPassword: PASSWORD, newPassword: NEXT_PASSWORD }),
      await auth(made.other, 'two-factor/disable', { password: 'wrong password' }),
      await made.other.send('DELETE', `${API}/passkeys/none`),
      await made.other.send('DELETE', tenant(made, `members/${await idOf(made, OWNER)}`)),
      await made.operator.post(operated(made, '/credit'), {}),
    ]) {
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(await rowsOf(refused)).toEqual([]);
    }
  });

  it('only operators see how people sign in', async () => {
    const seen = (await made.operator.get(`${API}/operator/audit?author=${OTHER}`)).json.data as { action: string }[];
    expect(seen.map(({ action }) => action)).toEqual(expect.arrayContaining(['session.end', 'password.change']));
    const own = (await made.owner.get(tenant(made, 'audit?limit=200'))).json.data as { action: string }[];
    expect(own.filter(({ action }) => /^(session|password|totp|passkey|account)\./.test(action))).toEqual([]);
  });
}
