import { mintCredential, newId, SCOPES, type Scope } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, inForceAfterMs, RawSocket } from '@tollgate/testing';
import { type Asked, managementApi, send } from '../ask';
import { OPERATOR_SECRET, type Services } from '../services';
import { runTollgate } from '../tollgate-process';

export function managementCredentialsTests(services: Services): void {
  // Tests make the store unavailable, and each time it would log a warning.
  configureLogging({ level: 'silent', pretty: false });
  /** The lifetime of a token that is used before it expires. */
  const LIFE_MS = 5_000;
  let acme: { tenantId: string; token: string; tokenId: string };
  beforeAll(async () => {
    acme = await services.tenant();
  });
  const { ask, expectRefusal } = managementApi(services, () => acme.token);

  describe('authentication', () => {
    it.each([undefined, '', 'Basic abc', 'Bearer', 'Bearer ', 'Token fma_x'])(
      'answers 401 missing_credential to %j',
      async (authorization) => {
        const asked = authorization === undefined ? { token: null } : { authorization };
        const { headers } = await expectRefusal('/keys', asked, 401, 'missing_credential');
        expect(headers.get('www-authenticate')).toBe('Bearer');
      },
    );

    it('answers 401 invalid_token to a malformed or unissued value, and to a disguised inference key', async () => {
      const unknown = mintCredential('token').value;
      for (const value of ['x', 'fma_', 'fma_short', `${unknown}x`, unknown, `${unknown.slice(0, -1)}-`, 'a b']) {
        await expectRefusal('/keys', { authorization: `Bearer ${value}` }, 401, 'invalid_token');
      }
    });

    it('answers 401 inference_key_not_accepted to an inference key, known or not', async () => {
      const { json } = await ask('/keys', { body: { name: 'used at the wrong surface' } });
      for (const value of [json.data.key, mintCredential('key').value, 'sk-svc-']) {
        await expectRefusal('/keys', { authorization: `Bearer ${value}` }, 401, 'inference_key_not_accepted');
      }
    });

    it('accepts the scheme in any case', async () => {
      expect((await ask('/keys', { authorization: `bearer ${acme.token}` })).status).toBe(200);
    });

    it('answers 401 token_revoked within a second of the revocation, also when the token is expired too', async () => {
      const expiresAt = new Date(Date.now() + LIFE_MS).toISOString();
      const [plain, expiring] = [await services.tenant(), await services.tenant(SCOPES, expiresAt)];
      for (const { tenantId, tokenId } of [plain, expiring]) {
        await services.messages.request('auth.tokens.revoke', { tenantId, id: tokenId });
      }
      const revoked = () => expectRefusal('/keys', { token: plain.token }, 401, 'token_revoked');
      expect(await inForceAfterMs(revoked)).toBeLessThan(1_000);
      await eventually(() => expectRefusal('/keys', { token: expiring.token }, 401, 'token_revoked'));
      await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(expiresAt)), { timeoutMs: 2 * LIFE_MS });
      await expectRefusal('/keys', { token: expiring.token }, 401, 'token_revoked');
    });

    it('answers 401 token_expired from the instant of expiry', async () => {
      const { token, expiresAt } = await eventually(async () => {
        const expiresAt = new Date(Date.now() + LIFE_MS).toISOString();
        const { token } = await services.tenant(SCOPES, expiresAt);
        expect((await ask('/keys', { token })).status).toBe(200);
        return { token, expiresAt };
      });
      let lastTakenMs = 0;
      const expired = async () => {
        const askedMs = Date.now();
        const { status } = await ask('/keys', { token });
        if (status === 200) lastTakenMs = askedMs;
        expect(status).toBe(401);
      };
      await eventually(expired, { timeoutMs: 4 * LIFE_MS });
      await expectRefusal('/keys', { token }, 401, 'token_expired');
      expect(lastTakenMs).toBeLessThan(Date.parse(expiresAt) + 1_000);
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
    it.each(endpoints)('requires the scope %s, and accepts no other, at %s', async (scope, path, asked, status) => {
      const { token } = await services.tenant([scope]);
      expect((await ask(path, { ...asked, token })).status).toBe(status);
      const others = await services.tenant(SCOPES.filter((other) => other !== scope));
      const refused = await expectRefusal(path, { ...asked, token: others.token }, 403, 'insufficient_scope');
      expect(refused.json.error.message).toContain(scope);
    });

    it('checks the credential and the scope before the body, whatever its size and media type', async () => {
      const { token } = await services.tenant(['keys:read']);
      const sent = [{ text: '{' }, { text: 'x'.repeat(70_000) }, { text: '{}', headers: { 'content-type': 'x' } }];
      for (const body of sent) {
        await expectRefusal('/keys', { token: null, ...body }, 401, 'missing_credential');
        await expectRefusal('/keys', { token: 'fma_unknown', ...body }, 401, 'invalid_token');
        await expectRefusal('/keys', { token, ...body }, 403, 'insufficient_scope');
      }
    });

    it('lets a client that waits for 100 Continue send its body only once the token is admitted', async () => {
      const post = (token: string, bytes: number) =>
        new RawSocket(services.publicUrl).send(
          `POST /_api/v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
            `Content-Type: application/json\r\nContent-Length: ${bytes}\r\nExpect: 100-continue\r\n\r\n`,
        );
      expect(await post('fma_unknown', 2).toEnd()).toMatch(/^HTTP\/1\.1 401 /);
      const large = await post(acme.token, 70_000).toEnd();
      expect(large).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close/i);
      expect(large).toContain('larger than 64 KiB');
      const small = post(acme.token, 2);
      await small.until('100 Continue\r\n\r\n');
      expect(await small.send('{}').until('name_required')).toContain('HTTP/1.1 400 ');
      small.destroy();
    });

    it('says which coding or charset of a body it does not read', async () => {
      const refusal = async (headers: Record<string, string>) => {
        const asked = { text: '{"name":"k"}', headers: { 'content-type': 'application/json', ...headers } };
        return (await expectRefusal('/keys', asked, 415, 'unsupported_media_type')).json.error.message;
      };
      expect(await refusal({ 'content-encoding': 'gzip' })).toContain('Content-Encoding "gzip"');
      expect(await refusal({ 'content-type': 'application/json; charset=utf-16' })).toContain('charset "utf-16"');
      expect(await refusal({ 'content-type': 'text/plain' })).toContain('application/json');
      const utf8 = { 'content-type': 'Application/JSON; charset="UTF-8"' };
      expect((await ask('/keys', { text: '{"name":"k","profile":null}', headers: utf8 })).status).toBe(201);
    });
  });

  describe('an unknown path or method', () => {
    it.each(['', '/', '/nothing', '/keys/', '/keys/a/b', '/Keys', '/keys/%zz'])(
      'answers 404 not_found to GET %s',
      (path) => expectRefusal(path, {}, 404, 'not_found'),
    );

    it('answers 404 not_found to an id of any length, and to an unknown method', async () => {
      await expectRefusal(`/keys/${'x'.repeat(5_000)}`, { method: 'DELETE' }, 404, 'not_found');
      await expectRefusal('/nothing', { method: 'PROPFIND' }, 404, 'not_found');
    });

    it.each([
      ['PUT', '/keys', 'GET, HEAD, POST'],
      ['DELETE', '/keys', 'GET, HEAD, POST'],
      ['GET', `/keys/${newId('key')}`, 'DELETE'],
      ['POST', '/usage', 'GET, HEAD'],
      ['PATCH', '/billing', 'GET, HEAD'],
      ['POST', '/tokens', 'GET, HEAD'],
      ['OPTIONS', '/tokens', 'GET, HEAD'],
      ['PROPFIND', '/billing', 'GET, HEAD'],
      ['QUERY', '/usage', 'GET, HEAD'],
      ['PUT', '/%6Beys', 'GET, HEAD, POST'],
    ])('answers 405 with Allow to %s %s', async (method, path, allow) => {
      const { headers } = await expectRefusal(path, { method }, 405, 'method_not_allowed');
      expect(headers.get('allow')).toBe(allow);
    });
  });

  describe('a path below /_api without the version', () => {
    it.each(['/_api', '/_api/', '/_api/v2/keys', '/_api?x=y', '/_api/v1x', '/%5Fap%69/nothing'])(
      'answers %s in the envelope of this API',
      async (path) => {
        for (const method of ['GET', 'POST', 'PROPFIND']) {
          const { status, json, headers } = await send(`${services.publicUrl}${path}`, { method });
          expect([status, json]).toEqual([404, { error: { code: 'not_found', message: expect.any(String) } }]);
          expect(headers.get('x-request-id')).toMatch(/^req_/);
        }
      },
    );

    it('also if the request is not valid HTTP, with the id of the caller', async () => {
      for (const [status, line] of [
        [417, 'Host: localhost\r\nExpect: more'],
        [400, 'X: no host'],
      ] as const) {
        const request = `GET /_api/v1/keys HTTP/1.1\r\n${line}\r\nX-Request-Id: mine-1\r\n\r\n`;
        const [head, body] = (await new RawSocket(services.publicUrl).send(request).toEnd()).split('\r\n\r\n');
        expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*x-request-id: mine-1`));
        expect(JSON.parse(body!)).toEqual({ error: { code: 'invalid_request', message: expect.any(String) } });
      }
    });
  });

  describe('a revocation while the credential store refuses writes', () => {
    const last = 'credentials.last_change';
    beforeEach(() => services.database.query(`ALTER TABLE ${last} ADD CONSTRAINT away CHECK (number < 0) NOT VALID`));
    afterEach(() => services.database.query(`ALTER TABLE ${last} DROP CONSTRAINT IF EXISTS away`));
    const comeBack = () => services.database.query(`ALTER TABLE ${last} DROP CONSTRAINT away`);
    const isRevoked = async (id: string) => {
      const [row] = await services.database.query<{ revoked: boolean }>(
        'SELECT revoked_at_ms IS NOT NULL AS revoked FROM credentials.credential WHERE id = $1',
        [id],
      );
      return row!.revoked;
    };
    let issued: { tenantId: string; token: string; tokenId: string; key: string; keyId: string };
    beforeAll(async () => {
      const made = await services.tenant();
      const { json } = await ask('/keys', { token: made.token, body: { name: 'to be revoked' } });
      issued = { ...made, key: json.data.key, keyId: json.data.id };
    });
    const models = () => send(`${services.publicUrl}/v1/models`, { token: issued.key });
    const STILL = (kind: string) => `The ${kind} may still be accepted. Repeat the revocation until it succeeds.`;

    it('of a key by the management API answers 503 with Retry-After until the store has it, then 204', async () => {
      const revoke = () => ask(`/keys/${issued.keyId}`, { method: 'DELETE', token: issued.token });
      for (let time = 0; time < 2; time++) {
        const { status, headers, json } = await revoke();
        expect([status, headers.get('retry-after')]).toEqual([503, '1']);
        expect(json).toEqual({ error: { code: 'unavailable', message: STILL('key') } });
      }
      expect((await models()).status).toBe(200);
      expect((await ask('/keys?limit=1', { token: issued.token })).json.data[0].status).toBe('active');
      await comeBack();
      expect((await revoke()).status).toBe(204);
      expect(await isRevoked(issued.keyId)).toBe(true);
      expect(await inForceAfterMs(async () => expect((await models()).status).toBe(401))).toBeLessThan(1_000);
      expect((await ask('/keys?limit=1', { token: issued.token })).json.data[0].status).toBe('revoked');
    });

    it('of a token by the operator API and the command line answers 503 until the store has it', async () => {
      const { tenantId, tokenId } = issued;
      const revoke = () =>
        send(`${services.operatorUrl}/_operator/v1/tenants/${tenantId}/tokens/${tokenId}`, {
          token: OPERATOR_SECRET,
          method: 'DELETE',
        });
      const { status, headers, json } = await revoke();
      expect([status, headers.get('retry-after')]).toEqual([503, '1']);
      expect(json).toEqual({ error: { code: 'unavailable', message: STILL('token') } });
      const env = { TOLLGATE_OPERATOR_URL: services.operatorUrl, TOLLGATE_OPERATOR_SECRET: OPERATOR_SECRET };
      const typed = await runTollgate(['token', 'revoke', tenantId, tokenId], env);
      expect([typed.code, typed.stdout, typed.stderr]).toEqual([1, '', `tollgate: ${STILL('token')}\n`]);
      await comeBack();
      expect((await revoke()).status).toBe(204);
      expect(await isRevoked(tokenId)).toBe(true);
    });
  });
}
