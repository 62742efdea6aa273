import { UnavailableError } from '@tollgate/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Changes } from '../../access/changes';
import type { ProviderRoles } from '../../access/provider-roles';
import type { OvertakenCalls } from '../../access/overtaken-calls';
import type { Mailer } from '../../http/mailer';
import type { ConsoleOptions } from '../../options';
import { AuthController } from './auth.controller';
import { PasswordTries } from './password-tries';
import { WRITES } from '../../sign-in/auth-calls';
import { providerSignIn } from '../../sign-in/oidc';
import type { SignIn } from '../../sign-in/sign-in';

const ORIGIN = 'https://console.example.com';
/** Every field that a page sends, and those that the library would take beside them. */
const SENT = {
  ...{
    email: 'a@example.com',
    password: 'p',
    currentPassword: 'p',
    newPassword: 'n',
    code: '1',
    response: {},
    name: 'n',
  },
  ...{ trustDevice: true, rememberMe: false, disableSession: true, createSession: true, callbackURL: '/elsewhere' },
  ...{ scopes: ['all'], idToken: {}, errorCallbackURL: '/elsewhere', revokeOtherSessions: false, issuer: 'x' },
};

interface Answered {
  status?: number;
  location?: string;
  body?: unknown;
}

/** The controller, with a library that is only what a test needs of it. */
async function call(
  name: string,
  {
    handler,
    setRoles = () => Promise.resolve(),
  }: { handler: (r: Request) => Response | Promise<Response>; setRoles?: () => Promise<void> },
  body: unknown = SENT,
): Promise<Answered> {
  const [method = '', path = ''] = name.split(' ');
  const signIn = { origin: ORIGIN, auth: { handler }, sessionOf: () => Promise.resolve(null) } as unknown as SignIn;
  const roles = { set: setRoles } as unknown as ProviderRoles;
  const overtaken = { now: () => Promise.resolve('now') } as unknown as OvertakenCalls;
  const answered: Answered = {};
  const reply = {
    code: (status: number) => (Object.assign(answered, { status }), reply),
    header: (header: string, value: string) => (Object.assign(answered, { [header]: value }), reply),
    send: (sent: unknown) => Object.assign(answered, { body: sent }),
  };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const request = {
    method,
    url: `/console/api/auth${path}`,
    headers,
    ip: '127.0.0.1',
    id: 'req',
    body: Buffer.from(text),
  };
  const tries = new PasswordTries({ secret: 'secret' } as ConsoleOptions, signIn);
  await new AuthController(signIn, roles, {} as Changes, {} as Mailer, overtaken, tries).call(
    request as unknown as FastifyRequest,
    reply as unknown as FastifyReply,
  );
  return answered;
}

it.each(Object.entries(WRITES))('%s passes on its own fields only, as JSON', async (name, { fields, own = {} }) => {
  let asked: Request | undefined;
  await call(name, { handler: (request) => ((asked = request), Response.json({})) });
  expect(asked?.headers.get('content-type')).toBe('application/json');
  const body = (await asked!.json()) as Record<string, unknown>;
  expect(body).toEqual({ ...Object.fromEntries(fields.map((field) => [field, SENT[field as 'code']])), ...own });
  // Fields by which a browser could give itself rights.
  for (const field of ['trustDevice', 'rememberMe', 'createSession', 'scopes', 'idToken'])
    expect(body).not.toHaveProperty(field);
});

it.each(['[1]', 'null', 'trustDevice=true', '{'])('the body %s is no JSON object', async (body) => {
  await expect(call('POST /two-factor/verify-totp', { handler: () => Response.json({}) }, body)).rejects.toMatchObject({
    code: 'invalid_json',
  });
});

it('a browser must ask for the fingerprint or PIN of a passkey', async () => {
  const handler = () => Response.json({ challenge: 'c', userVerification: 'preferred' });
  const { body } = await call('GET /passkey/generate-authenticate-options', { handler });
  expect(body).toEqual({ challenge: 'c', userVerification: 'required' });
});

describe('a person who comes back from the provider', () => {
  const page = (path: string) =>
    new Response(null, { status: 302, headers: { location: ORIGIN + path, 'set-cookie': 'a=b' } });
  const away = () => Promise.reject(new UnavailableError('auth does not answer'));
  const handler = () => {
    Object.assign(providerSignIn.getStore()!, { userId: 'ada', groups: [] });
    return page('/console/');
  };

  it('sees on the sign-in page that a service is unavailable, and has no session', async () => {
    const answered = await call('GET /callback/oidc?code=c', { handler, setRoles: away });
    expect(answered).toEqual({ status: 302, location: `${ORIGIN}/console/sign-in?error=unavailable` });
    expect(await call('GET /callback/oidc', { handler: away })).toEqual(answered);
  });

  it.each([
    ...['https://evil.example', 'http://console.example.com/console/', 'https://console.example.com:444/console/'],
    ...['https://console.example.com.evil.example/console/', 'https://console.example.com@evil.example/console/'],
    ...['//evil.example', '//evil.example/console/', '///evil.example', '////evil.example', 'https:///evil.example'],
    ...[
      '/\\evil.example',
      '\\\\evil.example',
      '\\/evil.example',
      '/\\/evil.example',
      'https:\\\\evil.example\\console',
    ],
    ...['/\t/evil.example', '/\t\\evil.example', 'https:evil.example', 'https:/evil.example'],
    ...['%2f%2fevil.example', '/%2fevil.example', '/%5cevil.example', '/%09/evil.example', '%68ttps://evil.example'],
    ...[
      '/console/..//evil.example',
      '/console/%2e%2e//evil.example',
      '/console/..\\\\evil.example',
      '/console/../docs',
    ],
    ...[
      '/console',
      '/consolex/',
      '/v1/models',
      'javascript:alert(1)',
      'data:text/html,x',
      'blob:https://evil.example/x',
    ],
    `blob:${ORIGIN}/console/`,
  ])('is not led to %j, whatever the library answers', async (location) => {
    const elsewhere = () => new Response(null, { status: 302, headers: { location } });
    const { status, location: led } = await call('GET /callback/oidc?code=c', { handler: elsewhere });
    expect([status, led]).toEqual([302, `${ORIGIN}/console/`]);
  });

  it.each(['/console/account', `${ORIGIN}/console/sign-in?error=x`, '/console/?to=https://evil.example'])(
    'is led to the page %s of the console',
    async (location) => {
      const own = () => new Response(null, { status: 302, headers: { location } });
      const { location: led } = await call('GET /callback/oidc?code=c', { handler: own });
      expect(led).toBe(new URL(location, ORIGIN).href);
    },
  );

  it.each([
    [500, 'internal_error'],
    [429, 'rate_limited'],
  ])('sees on the sign-in page that the library failed with %i, and has no session', async (status, error) => {
    const failed = () => new Response('{}', { status, headers: { 'set-cookie': 'a=b' } });
    const answered = await call('GET /callback/oidc?code=c', { handler: failed });
    expect(answered).toEqual({ status: 302, location: `${ORIGIN}/console/sign-in?error=${error}` });
  });

  it('ends on the console, and other failures are not taken for an unavailable service', async () => {
    expect(await call('GET /callback/oidc', { handler })).toMatchObject({
      status: 302,
      location: `${ORIGIN}/console/`,
    });
    const broken = () => Promise.reject(new TypeError('a mistake'));
    await expect(call('GET /callback/oidc', { handler, setRoles: broken })).rejects.toThrow('a mistake');
  });
});
