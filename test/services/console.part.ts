import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually, onceServed } from '@tollgate/testing';
import { BrowserSession } from '../console/running/browser';
import { API, join, signIn } from '../console/running/people';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, type Deployment, type Replicas } from './deployment';
import { chat, newTenant, operate, type Tenant } from './first-steps';
import type { ServiceProcess } from './service-process';

const NOTICE_TIMEOUT_MS = 30_000;
/** Where nothing listens. */
const NOWHERE = 'http://127.0.0.1:1';

/** The log lines of a process that match. */
const logged = ({ stderr }: ServiceProcess, text: RegExp) => stderr.split('\n').filter((line) => text.test(line));
const originOf = ({ addresses }: ServiceProcess) => new URL(addresses.consoleUrl).origin;

/** The console as a process of its own, beside running services. */
export function consoleTests(deployment: Deployment, replicas: Replicas): void {
  const gateway = (): ServiceProcess => replicas.gateway[0]!;
  const oidc = (issuer: string) => ({
    TOLLGATE_OIDC_ISSUER: issuer,
    TOLLGATE_OIDC_CLIENT_ID: 'console',
    TOLLGATE_OIDC_CLIENT_SECRET: 'a-secret-that-the-issuer-does-not-know',
  });
  const invite = (body: object) =>
    operate<{ link: string }>(gateway(), '/operator-invitations', body).then(({ link }) => link);
  let service: ServiceProcess;
  let tenant: Tenant;
  beforeAll(async () => {
    // Its sign-in works in spite of this issuer.
    service = await deployment.start('console', oidc(NOWHERE));
    tenant = await newTenant(gateway());
  });
  afterAll(() => service.end('SIGKILL'));

  it('an operator who is invited over the operator API signs in, and reads what the services know', async () => {
    const link = await invite({ tenantId: tenant.id });
    expect(new URL(link).origin).toBe(originOf(service));
    const operator = await join(originOf(service), link, 'operator@example.com', 'Grace');
    expect((await operator.get(`${API}/me`)).json).toMatchObject({ isOperator: true, tenants: [{ id: tenant.id }] });
    // The other services may be slow to answer the first requests of a process.
    const overview = await onceServed(() => operator.get(`${API}/tenants/${tenant.id}/overview`));
    expect(overview).toMatchObject({ status: 200, json: { credit: { balanceCents: 1_000 } } });
    const made = await onceServed(() => operator.post(`${API}/tenants/${tenant.id}/keys`, { name: 'by the console' }));
    expect(made.status).toBe(201);
    await eventually(async () => expect((await chat(gateway(), made.json.key)).status).toBe(200));
  });

  it('an issuer that cannot be reached is one line in the log, and people sign in by password', async () => {
    const browser = new BrowserSession(originOf(service));
    for (let time = 0; time < 2; time++)
      expect((await browser.get(`${API}/sign-in-options`)).json).toEqual({ oidc: false, mail: false });
    await signIn(browser, 'operator@example.com');
    const lines = logged(service, /OIDC|OpenID|discovery/i);
    expect(lines).toEqual([
      expect.stringContaining('TOLLGATE_OIDC_ISSUER does not answer as an OpenID Connect issuer'),
    ]);
    expect(lines[0]).toContain(NOWHERE);
  });

  it('a client secret that the issuer refuses is one line in the log, and people sign in by password', async () => {
    const issuer = await refusingIssuer();
    const other = await deployment.start('console', oidc(issuer.url));
    try {
      const browser = new BrowserSession(originOf(other));
      expect((await browser.get(`${API}/sign-in-options`)).json).toEqual({ oidc: true, mail: false });
      const begun = await browser.post(`${API}/auth/sign-in/social`, { provider: 'oidc', callbackURL: '/console/' });
      const state = new URL(begun.json.url).searchParams.get('state')!;
      const back = await browser.get(`${API}/auth/callback/oidc?code=a-code&state=${encodeURIComponent(state)}`);
      expect([back.status, back.headers.get('location')]).toEqual([
        302,
        expect.stringMatching(new RegExp(`^${originOf(other)}/console/sign-in\\?error=`)),
      ]);
      await signIn(browser, 'operator@example.com');
      await eventually(() => expect(logged(other, /TOLLGATE_OIDC_CLIENT_SECRET/)).toHaveLength(1));
      expect(other.stderr).not.toContain('a-secret-that-the-issuer-does-not-know');
      expect(await other.end()).toBe(0);
    } finally {
      await other.end('SIGKILL');
      issuer.close();
    }
  });

  it('while it is down, inference is not affected, and a link is unavailable until it is back', async () => {
    await service.end('SIGKILL');
    expect((await onceServed(() => chat(gateway(), tenant.key))).status).toBe(200);
    const url = `${gateway().addresses.operatorUrl}/_operator/v1/operator-invitations`;
    const asked = await call<{ error: { code: string } }>(url, OPERATOR_SECRET, { method: 'POST', body: '{}' });
    expect([asked.status, asked.body.error.code]).toEqual([503, 'unavailable']);
    service = await deployment.start('console');
    await eventually(() => invite({}), { timeoutMs: NOTICE_TIMEOUT_MS });
  });
}

/** An issuer of OpenID Connect that knows no client. */
async function refusingIssuer(): Promise<{ url: string; close(): Server }> {
  const server = createServer((request, response) => {
    const base = `http://${request.headers.host}`;
    const known = request.url === '/.well-known/openid-configuration';
    const refused = { error: 'invalid_client', error_description: 'client authentication failed' };
    const configuration = {
      issuer: base,
      authorization_endpoint: `${base}/auth`,
      token_endpoint: `${base}/token`,
      jwks_uri: `${base}/jwks`,
      userinfo_endpoint: `${base}/me`,
      id_token_signing_alg_values_supported: ['RS256'],
    };
    response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' });
    response.end(JSON.stringify(known ? configuration : refused));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}
