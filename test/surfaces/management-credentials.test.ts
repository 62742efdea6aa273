import { mintCredential, newId, SCOPES, type Scope } from '@tollgate/contracts';
import { eventually, inForceAfterMs } from '@tollgate/testing';
import { type Asked, managementApi } from './ask';
import { useServices } from './services';

const services = useServices();
/** Of a token that is to be used before it expires. */
const LIFE_MS = 5_000;
let acme: { tenantId: string; token: string; tokenId: string };
beforeAll(async () => {
  acme = await services.tenant();
});
const { ask, expectRefusal } = managementApi(services, () => acme.token);

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

describe('what is not there', () => {
  it.each(['', '/', '/nothing', '/keys/', '/keys/a/b', '/Keys', '/keys/%zz'])(
    'answers 404 not_found to GET %s',
    (path) => expectRefusal(path, {}, 404, 'not_found'),
  );

  it('answers 404 not_found to an id of any length, and to a method that nobody takes', async () => {
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
  ])('answers 405 with Allow to %s %s', async (method, path, allow) => {
    const { headers } = await expectRefusal(path, { method }, 405, 'method_not_allowed');
    expect(headers.get('allow')).toBe(allow);
  });
});
