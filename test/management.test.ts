import { hashCredential, isWellFormedCredential, mintCredential, newId, SCOPES, type Scope } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { useServices } from './services';

const services = useServices();
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
let acme: { tenantId: string; token: string; tokenId: string };
beforeAll(async () => {
  acme = await services.tenant();
});

interface Asked {
  method?: string;
  /** Of Acme when left out; null sends no Authorization at all. */
  token?: string | null;
  authorization?: string;
  body?: unknown;
  text?: string | Buffer;
  headers?: Record<string, string>;
}

async function ask(path: string, { method, token = acme.token, authorization, body, text, headers = {} }: Asked = {}) {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const credential = authorization ?? (token === null ? undefined : `Bearer ${token}`);
  const response = await fetch(`${services.publicUrl}/_api/v1${path}`, {
    method: method ?? (sent === undefined ? 'GET' : 'POST'),
    headers: {
      ...(credential !== undefined && { authorization: credential }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  });
  const answer = await response.text();
  return { status: response.status, headers: response.headers, json: answer === '' ? null : JSON.parse(answer) };
}

const refused = (code: string) => ({ error: { code, message: expect.any(String) } });

async function expectRefusal(path: string, asked: Asked, status: number, code: string) {
  const answer = await ask(path, asked);
  expect(answer.json).toEqual(refused(code));
  expect(answer.status).toBe(status);
  return answer;
}

describe('who may ask', () => {
  it.each([undefined, '', 'Basic abc', 'Bearer', 'Bearer ', 'Token fma_x'])(
    'answers 401 missing_credential to %j',
    async (authorization) => {
      const asked = authorization === undefined ? { token: null } : { authorization };
      const { headers } = await expectRefusal('/keys', asked, 401, 'missing_credential');
      expect(headers.get('www-authenticate')).toBe('Bearer');
    },
  );

  it('answers 401 invalid_token to a value that is malformed or was never issued, and to an inference key in disguise', async () => {
    const unknown = mintCredential('token').value;
    for (const value of ['x', 'fma_', 'fma_short', `${unknown}x`, unknown, `${unknown.slice(0, -1)}-`, 'a b']) {
      await expectRefusal('/keys', { authorization: `Bearer ${value}` }, 401, 'invalid_token');
    }
  });

  it('answers 401 inference_key_not_accepted to an inference key, known or not', async () => {
    const { json } = await ask('/keys', { body: { name: 'used at the wrong door' } });
    for (const value of [json.data.key, mintCredential('key').value, 'sk-svc-']) {
      await expectRefusal('/keys', { authorization: `Bearer ${value}` }, 401, 'inference_key_not_accepted');
    }
  });

  it('takes the scheme in any case', async () => {
    expect((await ask('/keys', { authorization: `bearer ${acme.token}` })).status).toBe(200);
  });

  it('answers 401 token_revoked within a second of the revocation, also when the token is expired too', async () => {
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    const [plain, expiring] = [await services.tenant(), await services.tenant(SCOPES, expiresAt)];
    for (const { tenantId, tokenId } of [plain, expiring]) {
      await services.messages.request('auth.tokens.revoke', { tenantId, id: tokenId });
    }
    await eventually(() => expectRefusal('/keys', { token: plain.token }, 401, 'token_revoked'), { timeoutMs: 1_000 });
    await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(expiresAt)));
    await expectRefusal('/keys', { token: expiring.token }, 401, 'token_revoked');
  });

  it('answers 401 token_expired from the instant of expiry', async () => {
    const expiresAt = new Date(Date.now() + 1_000).toISOString();
    const { token } = await services.tenant(SCOPES, expiresAt);
    expect((await ask('/keys', { token })).status).toBe(200);
    await eventually(() => expectRefusal('/keys', { token }, 401, 'token_expired'), { timeoutMs: 2_000 });
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
  });

  const endpoints: [Scope, string, Asked, number][] = [
    ['keys:read', '/keys', {}, 200],
    ['keys:write', '/keys', { body: { name: 'k' } }, 201],
    ['keys:write', `/keys/${newId('key')}`, { method: 'DELETE' }, 404],
    ['usage:read', '/usage', {}, 200],
    ['billing:read', '/billing', {}, 200],
    ['tokens:read', '/tokens', {}, 200],
  ];
  it.each(endpoints)('asks for the scope %s, and no other will do, at %s', async (scope, path, asked, status) => {
    const { token } = await services.tenant([scope]);
    expect((await ask(path, { ...asked, token })).status).toBe(status);
    const others = await services.tenant(SCOPES.filter((other) => other !== scope));
    await expectRefusal(path, { ...asked, token: others.token }, 403, 'insufficient_scope');
  });

  it('looks at the scope before the body', async () => {
    const { token } = await services.tenant(['keys:read']);
    await expectRefusal('/keys', { token, text: '{' }, 403, 'insufficient_scope');
  });
});

describe('POST /keys', () => {
  it('issues a key that is shown once: 201, exactly the documented fields, not to be cached', async () => {
    const { status, json, headers } = await ask('/keys', {
      body: { name: '  backend ', profile: 'default', unknown: 1 },
    });
    expect(status).toBe(201);
    expect(json).toEqual({
      data: {
        id: expect.stringMatching(/^key_/),
        name: 'backend',
        key: expect.any(String),
        last4: json.data.key.slice(-4),
      },
      note: expect.any(String),
    });
    expect(isWellFormedCredential('key', json.data.key)).toBe(true);
    expect(headers.get('cache-control')).toBe('no-store');
    const record = await eventually(async () => {
      const found = await services.credentials.lookup(hashCredential(json.data.key));
      expect(found).not.toBeNull();
      return found!;
    });
    expect(record).toMatchObject({ kind: 'key', id: json.data.id, tenantId: acme.tenantId, profile: 'default' });
  });

  it('takes an expiry in the future, in UTC where it names no offset', async () => {
    const cases: [string | null, string | null][] = [
      ['2099-01-01', '2099-01-01T00:00:00.000Z'],
      ['2099-01-01T12:00:00', '2099-01-01T12:00:00.000Z'],
      ['2099-01-01T12:00:00.5+02:00', '2099-01-01T10:00:00.500Z'],
      [null, null],
    ];
    for (const [expiresAt, expected] of cases) {
      const { status, json } = await ask('/keys', { body: { name: 'k', expiresAt } });
      expect(status).toBe(201);
      const { json: list } = await ask('/keys?limit=1');
      expect(list.data[0]).toMatchObject({ id: json.data.id, expiresAt: expected });
    }
  });

  it.each([[{}], [{ name: '' }], [{ name: ' \t ' }], [{ profile: 'default' }]])(
    'answers 400 name_required to %j',
    (body) => expectRefusal('/keys', { body }, 400, 'name_required'),
  );
  it('answers 400 name_required when there is no body', () =>
    expectRefusal('/keys', { method: 'POST' }, 400, 'name_required'));

  it.each([1, null, [], {}, true, 'x'.repeat(101), 'a\u0000b', 'a\nb', '\ud800'].map((name) => [name]))(
    'answers 400 invalid_name to %j',
    (name) => expectRefusal('/keys', { body: { name } }, 400, 'invalid_name'),
  );
  it('counts a name in characters, after trimming', async () => {
    expect((await ask('/keys', { body: { name: ` ${'😀'.repeat(100)} ` } })).status).toBe(201);
    await expectRefusal('/keys', { body: { name: '😀'.repeat(101) } }, 400, 'invalid_name');
  });

  it.each([1, null, [], '', 'no such profile', 'nobody'].map((profile) => [profile]))(
    'answers 400 invalid_profile to %j',
    (profile) => expectRefusal('/keys', { body: { name: 'k', profile } }, 400, 'invalid_profile'),
  );

  const wrongTimes = [
    1,
    '',
    'tomorrow',
    '2020-01-01T00:00:00Z',
    '2099-02-30',
    '2099-13-01',
    '2099-01-01T25:00:00Z',
    '99999-01-01',
  ];
  it.each(wrongTimes.map((time) => [time]))('answers 400 invalid_expires_at to %j', (expiresAt) =>
    expectRefusal('/keys', { body: { name: 'k', expiresAt } }, 400, 'invalid_expires_at'),
  );

  const malformed = ['{', '[]', 'null', '"x"', '1', '{"name":"k",}', Buffer.from([0x7b, 0xff, 0x7d])];
  it.each(malformed.map((text) => [text]))('answers 400 invalid_json to %j', (text) =>
    expectRefusal('/keys', { text }, 400, 'invalid_json'),
  );

  it('answers 415 to another content type, and to a compressed body', async () => {
    for (const headers of [{ 'content-type': 'text/plain' }, { 'content-encoding': 'gzip' }]) {
      await expectRefusal('/keys', { body: { name: 'k' }, headers }, 415, 'unsupported_media_type');
    }
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await ask('/keys', { body: { name: 'k' }, headers })).status).toBe(201);
  });

  it('answers 413 to a body over 64 KiB', () =>
    expectRefusal('/keys', { body: { name: 'k', pad: 'x'.repeat(65_536) } }, 413, 'payload_too_large'));
});

describe('GET /keys', () => {
  it('lists exactly the documented fields, newest first, page by page, and only the tenant’s own', async () => {
    const { token } = await services.tenant();
    await ask('/keys', { body: { name: 'of somebody else' } });
    const issued: string[] = [];
    for (const name of ['a', 'b', 'c']) issued.unshift((await ask('/keys', { token, body: { name } })).json.data.id);
    const first = await ask('/keys?limit=2', { token });
    expect(first.json).toEqual({
      data: [
        {
          id: issued[0],
          name: 'c',
          last4: expect.any(String),
          status: 'active',
          createdAt: expect.stringMatching(ISO),
          expiresAt: null,
        },
        expect.objectContaining({ id: issued[1] }),
      ],
      nextCursor: issued[1],
    });
    const second = await ask(`/keys?limit=2&after=${first.json.nextCursor}`, { token });
    expect(second.json).toEqual({ data: [expect.objectContaining({ id: issued[2] })], nextCursor: null });
  });

  it.each([
    'limit=0',
    'limit=201',
    'limit=x',
    'limit=1.5',
    'limit=',
    'limit=1&limit=2',
    'after=x',
    'after=',
    `after=${newId('tok')}`,
    `after=${newId('key')}`,
    'after=%00',
  ])('answers 400 invalid_parameter to ?%s', (query) => expectRefusal(`/keys?${query}`, {}, 400, 'invalid_parameter'));
});

describe('DELETE /keys/{id}', () => {
  it('revokes: 204 without a body, again 204, and the list says so', async () => {
    const { json } = await ask('/keys', { body: { name: 'short-lived' } });
    for (let time = 0; time < 2; time++) {
      const answer = await ask(`/keys/${json.data.id}`, { method: 'DELETE' });
      expect([answer.status, answer.json]).toEqual([204, null]);
    }
    const { json: list } = await ask('/keys?limit=1');
    expect(list.data[0]).toMatchObject({ id: json.data.id, status: 'revoked' });
  });

  it('answers 404 not_found to an unknown id, a malformed one, and a key of another tenant, which stays as it is', async () => {
    const other = await services.tenant();
    const { json } = await ask('/keys', { token: other.token, body: { name: 'not yours' } });
    for (const id of [newId('key'), 'x', '%00', acme.tokenId, json.data.id]) {
      await expectRefusal(`/keys/${id}`, { method: 'DELETE' }, 404, 'not_found');
    }
    expect((await ask('/keys', { token: other.token })).json.data[0].status).toBe('active');
  });
});

describe('GET /tokens', () => {
  it('lists the calling token with its last use, and never a value or a hash', async () => {
    const { token, tokenId } = await services.tenant();
    const started = Date.now();
    const row = await eventually(
      async () => {
        const { json } = await ask('/tokens', { token });
        expect(json).toEqual({ data: [expect.anything()], nextCursor: null });
        expect(json.data[0].lastUsedAt).not.toBeNull();
        return json.data[0];
      },
      { timeoutMs: 10_000, everyMs: 200 },
    );
    expect(row).toEqual({
      id: tokenId,
      name: 'test',
      last4: token.slice(-4),
      scopes: [...SCOPES],
      createdAt: expect.stringMatching(ISO),
      lastUsedAt: expect.stringMatching(ISO),
      expiresAt: null,
      revokedAt: null,
    });
    expect(Date.parse(row.lastUsedAt)).toBeGreaterThanOrEqual(started - 1);
  });
});

describe('GET /billing', () => {
  it('gives balance, entries newest first and page by page, and receipts, in exactly the documented fields', async () => {
    const { tenantId, token } = await services.tenant();
    for (const [ref, amountCents] of [
      ['a', 1_000],
      ['b', 25],
    ] as const) {
      await services.messages.request('billing.credit.add', { tenantId, amountCents, source: 'manual', ref });
    }
    const { status, json } = await ask('/billing?limit=1', { token });
    expect(status).toBe(200);
    expect(json).toEqual({
      data: {
        balanceCents: 1_025,
        entries: [
          {
            id: expect.any(String),
            type: 'topup',
            amountCents: 25,
            source: 'manual',
            ref: 'b',
            createdAt: expect.stringMatching(ISO),
          },
        ],
        invoices: expect.any(Array),
      },
      nextCursor: json.data.entries[0].id,
    });
    const { json: next } = await ask(`/billing?after=${json.nextCursor}`, { token });
    expect(next.data.entries).toEqual([expect.objectContaining({ ref: 'a', amountCents: 1_000 })]);
    expect(next.nextCursor).toBeNull();
  });

  it.each(['limit=0', 'after=x', `after=${newId('ent')}`])('answers 400 invalid_parameter to ?%s', (query) =>
    expectRefusal(`/billing?${query}`, {}, 400, 'invalid_parameter'),
  );
});

describe('GET /usage', () => {
  it('gives this calendar month until now by default, in exactly the documented fields', async () => {
    const before = new Date();
    const { status, json } = await ask('/usage');
    expect(status).toBe(200);
    const zero = { requests: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costCents: 0 };
    expect(json).toEqual({
      data: { from: expect.any(String), to: expect.stringMatching(ISO), totals: zero, groups: [] },
    });
    expect(json.data.from).toBe(`${before.toISOString().slice(0, 7)}-01T00:00:00.000Z`);
    expect(Date.parse(json.data.to)).toBeGreaterThanOrEqual(before.getTime());
  });

  it('takes every filter and grouping', async () => {
    const query = `from=2026-01-01&to=2026-02-01T00:00:00%2B01:00&groupBy=model,key,day,hour&model=sim-small&keyId=${newId('key')}`;
    const { status, json } = await ask(`/usage?${query}`);
    expect(status).toBe(200);
    expect(json.data).toMatchObject({ from: '2026-01-01T00:00:00.000Z', to: '2026-01-31T23:00:00.000Z', groups: [] });
  });

  it.each([
    'from=x',
    'to=2026-02-30',
    'from=2026-01-02&to=2026-01-01',
    'from=2026-01-01&to=2026-01-01',
    'from=2999-01-01',
    'groupBy=user',
    'groupBy=',
    'groupBy=day,day',
    'model=%00',
    'model=',
    'keyId=x',
    'from=2026-01-01&from=2026-01-02',
  ])('answers 400 invalid_parameter to ?%s', (query) => expectRefusal(`/usage?${query}`, {}, 400, 'invalid_parameter'));
});

describe('what is not there', () => {
  it.each(['', '/', '/nothing', '/keys/', '/keys/a/b', '/Keys'])('answers 404 not_found to GET %s', (path) =>
    expectRefusal(path, {}, 404, 'not_found'),
  );

  it.each([
    ['PUT', '/keys', 'GET, HEAD, POST'],
    ['DELETE', '/keys', 'GET, HEAD, POST'],
    ['GET', `/keys/${newId('key')}`, 'DELETE'],
    ['POST', '/usage', 'GET, HEAD'],
    ['PATCH', '/billing', 'GET, HEAD'],
    ['POST', '/tokens', 'GET, HEAD'],
    ['OPTIONS', '/tokens', 'GET, HEAD'],
  ])('answers 405 with Allow to %s %s', async (method, path, allow) => {
    const { headers } = await expectRefusal(path, { method }, 405, 'method_not_allowed');
    expect(headers.get('allow')).toBe(allow);
  });
});
