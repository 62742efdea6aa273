import { BrowserSession } from '../running/browser';
import { API, PASSWORD, type Role } from '../running/people';

/** What every answer says, the bodies and names that are refused, and a booking that is repeated. */
export function answerTests(
  deployed: () => { base: string; operator: BrowserSession; of: (role: Role) => BrowserSession; tenantId: string },
): void {
  it('every answer forbids frames, foreign scripts and the guessing of types', async () => {
    const { base } = deployed();
    for (const path of ['/console', '/console/sign-in', '/console/assets/none.js', `${API}/me`, `${API}/none`]) {
      const { headers } = await new BrowserSession(base).get(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("default-src 'none'; script-src 'self';");
      expect(policy).not.toContain('unsafe');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('each page has a nonce of its own', async () => {
    const { base } = deployed();
    const nonces = new Set<string>();
    for (let time = 0; time < 3; time++) {
      const { headers, text } = await new BrowserSession(base).get('/console/');
      const [, nonce = ''] = /'nonce-([^']+)'/.exec(headers.get('content-security-policy')!) ?? [];
      expect(text).toContain(nonce);
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  it.each([
    ['a body that is not JSON', 'not JSON', 'invalid_json', 400],
    ['a wrong type', { name: 7 }, 'invalid_request', 400],
    ['an unknown field', { name: 'x', tenantId: 'ten_x' }, 'invalid_request', 400],
    ['a name with a control character', { name: 'a\u0007b' }, 'invalid_name', 400],
    ['a name that turns the direction of text', { name: 'a\u202eb' }, 'invalid_name', 400],
    ['a blank name', { name: '   ' }, 'invalid_name', 400],
    ['an instant in the past', { name: 'x', expiresAt: '2020-01-01T00:00:00Z' }, 'invalid_expires_at', 400],
    ['a profile that does not exist', { name: 'x', profile: 'none' }, 'invalid_profile', 400],
  ])('%s is refused with its code and the request id', async (_what, body, code, status) => {
    const { of, tenantId } = deployed();
    const answer = await of('owner').post(`${API}/tenants/${tenantId}/keys`, body);
    expect(answer.status).toBe(status);
    expect(answer.json.error).toEqual({
      code,
      message: expect.any(String),
      requestId: answer.headers.get('x-request-id'),
    });
  });

  it.each(['a\u0007b', 'a\nb', 'a\u202eb', '\u200b'])('no name of a tenant, token or person is %j', async (name) => {
    const { base, operator, tenantId } = deployed();
    const secret = 'x'.repeat(43);
    const invited = new BrowserSession(base, '127.0.0.2');
    for (const [browser, path, body] of [
      [operator, 'operator/tenants', { name }],
      [operator, `tenants/${tenantId}/tokens`, { name, scopes: ['keys:read'] }],
      [invited, 'invitation/accept-as-new', { name, secret, email: 'x@example.com', password: PASSWORD }],
    ] as const) {
      const answer = await browser.post(`${API}/${path}`, body);
      expect([path, answer.status, answer.json.error.code]).toEqual([path, 400, 'invalid_name']);
    }
  });

  it('HTML in a name is text', async () => {
    const { of, tenantId } = deployed();
    const name = '<img src=x onerror=alert(1)>';
    expect((await of('owner').post(`${API}/tenants/${tenantId}/keys`, { name })).status).toBe(201);
    const { data } = (await of('owner').get(`${API}/tenants/${tenantId}/keys`)).json as { data: { name: string }[] };
    expect(data.map((key) => key.name)).toContain(name);
  });

  it('a top-up is previewed, booked, and booked once when it is repeated', async () => {
    const { operator, of, tenantId } = deployed();
    const credit = `${API}/operator/tenants/${tenantId}/credit`;
    const before = (await operator.get(`${API}/tenants/${tenantId}/credit`)).json.balanceCents as number;
    const booking = { kind: 'topup', amountCents: 500, reason: 'first', ref: 'test-1' };
    const preview = await operator.post(`${credit}/preview`, booking);
    expect(preview.json).toEqual({
      type: 'topup',
      amountCents: 500,
      balanceBeforeCents: before,
      balanceAfterCents: before + 500,
    });
    for (let time = 0; time < 2; time++)
      expect((await operator.post(credit, booking)).json.balanceCents).toBe(before + 500);
    expect((await of('billing').get(`${API}/tenants/${tenantId}/credit`)).json.balanceCents).toBe(before + 500);
  });
}
