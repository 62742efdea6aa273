// An issuer in this process that signs whatever a test wants, also what a real provider would not.
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { once } from 'node:events';
import { createServer } from 'node:http';

const { publicKey, privateKey } = await generateKeyPair('RS256');
const jwk = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'RS256', use: 'sig' };

/**
 * Of `answers`, everything may be replaced: what the issuer says of itself and of the person who signs in, and at which
 * path it gives no answer, but calls `reached` with the response.
 */
export async function startSigningIssuer() {
  const answers = {
    discovery: {},
    claims: {},
    profile: undefined,
    hasIdToken: true,
    nonce: '',
    silentAt: '',
    reached() {},
  };
  const server = createServer((request, response) => void answer(request.url, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const bodies = {
    '/.well-known/openid-configuration': () => ({
      ...{ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
      ...{ jwks_uri: `${issuer}/keys`, userinfo_endpoint: `${issuer}/profile` },
      ...{ id_token_signing_alg_values_supported: ['RS256'], ...answers.discovery },
    }),
    '/keys': () => ({ keys: [jwk] }),
    '/profile': () => answers.profile,
    async '/token'() {
      const { claims, nonce } = answers;
      const token = new SignJWT({ ...claims, nonce, iss: issuer, aud: 'tollgate' });
      const signed = token.setProtectedHeader({ alg: 'RS256', kid: 'k' }).setIssuedAt().setExpirationTime('1h');
      const idToken = answers.hasIdToken && { id_token: await signed.sign(privateKey) };
      return { access_token: 'access-token', refresh_token: 'refresh-token', token_type: 'Bearer', ...idToken };
    },
  };
  async function answer(url, response) {
    if (url === answers.silentAt) return answers.reached(response);
    const body = await bodies[url]();
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  }
  const close = () => (server.close(), server.closeAllConnections());
  return { issuer, answers, close };
}
