import { mintCredential } from '@tollgate/contracts';
import { boundRoutes } from './access.part';
import type { BrowserSession } from '../running/browser';
import { API, PASSWORD } from '../running/people';

const RANGE = 'from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z&step=day';
/** The schema's format of times takes them, or the services read them in another way. */
const NO_TIMES = ['2026-11-01T00:00:00%2B05', '2026-11-01T23:59:60Z', '0000-01-01T00:00:00Z'];

/** What no page sends, and no service or database could read. It is the fault of its sender. */
export function malformedTests(
  deployed: () => { operator: BrowserSession; tenantId: string; forgetTries: () => Promise<unknown> },
): void {
  beforeEach(() => deployed().forgetTries());
  const asked = async (method: string, path: string, body?: unknown) => {
    const { status, json } = await deployed().operator.send(method, `${API}/${path}`, body);
    return [method, path, status, json?.error?.code];
  };
  const ofTenant = (path: string) => `tenants/${deployed().tenantId}/${path}`;

  it.each(NO_TIMES)('the time %s is malformed', async (time) => {
    for (const path of [
      ...[`usage?from=${time}&to=2026-11-02T00:00:00Z&step=day`, `usage?from=2026-11-01T00:00:00Z&to=${time}&step=day`],
      ...[`requests?from=${time}`, `requests?to=${time}`, `audit?from=${time}`, `audit?to=${time}`],
    ])
      expect(await asked('GET', ofTenant(path))).toEqual(['GET', ofTenant(path), 400, 'invalid_parameter']);
    const body = { name: 'x', expiresAt: decodeURIComponent(time) };
    expect((await asked('POST', ofTenant('keys'), body))[2]).toBe(400);
  });

  it('a time may have an offset that PostgreSQL does not read', async () => {
    const time = '2026-11-01T00:00:00%2B16:00';
    for (const path of [`usage?from=${time}&to=2026-11-02T00:00:00Z&step=day`, `requests?from=${time}`])
      expect(await asked('GET', ofTenant(path))).toEqual(['GET', ofTenant(path), 200, undefined]);
    for (const path of [ofTenant(`audit?from=${time}`), ofTenant(`audit?to=${time}`), `operator/audit?from=${time}`])
      expect(await asked('GET', path)).toEqual(['GET', path, 200, undefined]);
  });

  it('nothing has U+0000 in its path: it does not exist', async () => {
    const routes = boundRoutes().filter((route) => route.includes(':'));
    expect(routes.length).toBeGreaterThan(20);
    for (const route of routes) {
      const [method = '', path = ''] = route.split(' ');
      const names = path.match(/:\w+/g)!;
      for (const name of names) {
        const others = path.replace(name, 'x%00').replace(':tenantId', deployed().tenantId);
        const wanted = others.replaceAll(/:\w+/g, 'x');
        expect(await asked(method, wanted, method === 'GET' ? undefined : {})).toEqual([
          ...[method, wanted, 404, 'not_found'],
        ]);
      }
    }
  });

  it('a secret in the place of an id goes to no service, because its messages are kept', async () => {
    const { value } = mintCredential('key');
    for (const [method, path, body] of [
      ['PATCH', ofTenant(`keys/${value}`), { name: 'pasted' }],
      ['POST', ofTenant(`keys/${value}/rotate`), { graceSeconds: 0 }],
      ['PUT', ofTenant(`keys/${value}/budget`), { budgetCents: 1 }],
      ['DELETE', ofTenant(`keys/${value}`)],
      ['DELETE', ofTenant(`tokens/${value}`)],
      ['GET', `operator/reconcile/${value}`],
    ] as const) {
      const { status, json } = await deployed().operator.send(method, `${API}/${path}`, body);
      // The words of the console itself. A service would name what it lacks.
      const wanted = [method, path, 404, 'This does not exist, or you may not see it.'];
      expect([method, path, status, json?.error?.message]).toEqual(wanted);
    }
  });

  it('a query with U+0000 is malformed', async () => {
    for (const path of [
      ...[`usage?${RANGE}&model=a%00b`, 'requests?model=%00', 'requests?model=a&model=%00', 'requests?outcome=%00'],
      ...['requests?after=%00', 'audit?author=%00'],
    ])
      expect(await asked('GET', ofTenant(path))).toEqual(['GET', ofTenant(path), 400, 'invalid_parameter']);
    for (const path of [
      ...['operator/tenants?search=%00', 'operator/people?search=%00', 'operator/people?after=%00'],
      ...['operator/audit?author=%00', 'auth/callback/oidc?state=%00&code=%00'],
    ])
      expect(await asked('GET', path)).toEqual(['GET', path, 400, 'invalid_parameter']);
  });

  it.each(['\0', '\ud800'])('a body with the text %j is malformed', async (text) => {
    const booking = { kind: 'topup', amountCents: 1, reason: text, ref: 'malformed-1' };
    const account = { secret: 'x'.repeat(43), name: `a${text}`, email: 'x@example.com', password: PASSWORD };
    for (const [path, body] of [
      [`operator/tenants/${deployed().tenantId}/credit`, booking],
      ['operator/tenants', { name: `a${text}` }],
      [ofTenant('keys'), { name: `a${text}` }],
      [ofTenant('keys'), { name: 'a', owner: `a${text}` }],
      [ofTenant('keys'), { name: 'a', profile: text }],
      ['invitation/accept-as-new', account],
      ['auth/sign-in/email', { email: `${text}@example.com`, password: PASSWORD }],
    ] as const)
      expect(await asked('POST', path, body)).toEqual(['POST', path, 400, 'invalid_request']);
    // The library looks the id up, for everybody who has a challenge.
    await deployed().operator.get(`${API}/auth/passkey/generate-authenticate-options`);
    const path = 'auth/passkey/verify-authentication';
    const response = { id: text, rawId: text, type: 'public-key', response: {}, clientExtensionResults: {} };
    expect(await asked('POST', path, { response })).toEqual(['POST', path, 400, 'invalid_request']);
  });
}
