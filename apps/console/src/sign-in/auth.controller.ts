import { All, Controller, Get, Req, Res } from '@nestjs/common';
import { logger } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Anybody, originOf } from '../access/allow';
import { Changes, type Origin } from '../access/changes';
import { ProviderRoles } from '../access/provider-roles';
import { ConsoleError, type ConsoleErrorCode } from '../http/errors';
import { AccountCall, accountCall } from './account-changes';
import { AUTH_PATH, CLIENT_ADDRESS_HEADER } from './better-auth';
import { headersOf } from './headers';
import { OIDC_PROVIDER, providerSignIn, type ProviderSignIn } from './oidc';
import { SignIn } from './sign-in';

/** The calls of the library that browsers may make. All others do not exist: some would show a session's secret. */
export const AUTH_CALLS: ReadonlySet<string> = new Set([
  'POST /sign-in/email',
  'POST /sign-in/social',
  'POST /link-social',
  'GET /callback/oidc',
  'POST /sign-out',
  'POST /change-password',
  'POST /two-factor/enable',
  'POST /two-factor/disable',
  'POST /two-factor/verify-totp',
  'POST /two-factor/verify-backup-code',
  'GET /passkey/generate-register-options',
  'POST /passkey/verify-registration',
  'GET /passkey/generate-authenticate-options',
  'POST /passkey/verify-authentication',
  'GET /passkey/list-user-passkeys',
]);

/** Those that change the account of the person who is signed in. */
const ACCOUNT_CALLS: ReadonlySet<string> = new Set([
  'POST /change-password',
  'POST /two-factor/disable',
  'POST /two-factor/verify-totp',
  'POST /passkey/verify-registration',
]);

const HOME = '/console/';
const CALLBACK = 'GET /callback/oidc';
/** The bodies of the calls that lead to the provider. The caller's could ask for other scopes, or lead elsewhere. */
const OWN_BODIES: Readonly<Record<string, object>> = {
  'POST /sign-in/social': { provider: OIDC_PROVIDER, callbackURL: HOME },
  'POST /link-social': { provider: OIDC_PROVIDER, callbackURL: '/console/account' },
};
/** Fields of the library's answers that hold the secret of a session. The cookie has it, scripts need not. */
const SECRET_FIELDS = ['token', 'session'];

/** Passes the calls of AUTH_CALLS to the sign-in library, and its errors on in our envelope. */
@Controller('console/api')
export class AuthController {
  constructor(
    private readonly signIn: SignIn,
    private readonly roles: ProviderRoles,
    private readonly changes: Changes,
  ) {}

  @Get('sign-in-options')
  @Anybody()
  async options(): Promise<{ oidc: boolean }> {
    return { oidc: await this.signIn.hasOidc() };
  }

  @All('auth/*')
  @Anybody()
  async call(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const url = new URL(request.url, this.signIn.origin);
    const call = `${request.method} ${url.pathname.slice(AUTH_PATH.length)}`;
    if (!AUTH_CALLS.has(call)) throw new ConsoleError('not_found');
    const headers = headersOf(request);
    headers.set(CLIENT_ADDRESS_HEADER, request.ip);
    const asked = new Request(url, { method: request.method, headers, body: bodyOf(request, call) });
    const person = ACCOUNT_CALLS.has(call) ? await this.signIn.sessionOf(headers) : null;
    const made = new AccountCall(this.changes, originOf(request), person);
    if (call === CALLBACK) return this.backFromProvider(asked, made, originOf(request), reply);
    const answer = await this.answerOf(made, asked);
    keepCookies(answer, reply);
    const parsed = jsonOf(await answer.text());
    if (answer.status >= 400) throw failureOf(answer, parsed);
    void reply.code(200).send(withoutSecrets(parsed));
  }

  /** UnavailableError: what the call would change could not be logged, so nothing was changed. */
  private async answerOf(made: AccountCall, asked: Request): Promise<Response> {
    const answer = await accountCall.run(made, () => this.signIn.auth.handler(asked));
    if (made.failure !== undefined) throw made.failure;
    return answer;
  }

  /** A person comes back from the provider: with roles and a session, or with an error for the page of sign-in. */
  private async backFromProvider(asked: Request, made: AccountCall, from: Origin, reply: FastifyReply): Promise<void> {
    const found: ProviderSignIn = {};
    const answer = await providerSignIn.run(found, () => this.answerOf(made, asked));
    if (found.userId !== undefined && found.groups !== undefined)
      await this.roles.set(found.userId, found.groups, from);
    const location = this.ownPage(answer.headers.get('location'));
    const error = new URL(location).searchParams.get('error');
    if (error !== null) logger('console').warn({ error, reason: found.reason }, hintOf(error));
    keepCookies(answer, reply);
    void reply.code(302).header('location', location).send();
  }

  /** A sign-in ends on a page of the console, whatever the caller asked for. */
  private ownPage(location: string | null): string {
    const { origin } = this.signIn;
    const url = new URL(location ?? HOME, origin);
    return url.origin === origin && url.pathname.startsWith(HOME) ? url.href : new URL(HOME, origin).href;
  }
}

function bodyOf({ method, body }: FastifyRequest, call: string): string | Uint8Array<ArrayBuffer> | null {
  if (method === 'GET') return null;
  const own = OWN_BODIES[call];
  return own ? JSON.stringify(own) : new Uint8Array((body as Buffer | undefined) ?? []);
}

function keepCookies(answer: Response, reply: FastifyReply): void {
  for (const cookie of answer.headers.getSetCookie()) reply.header('set-cookie', cookie);
}

/** `invalid_code`: the issuer refused our request for tokens. */
const hintOf = (error: string): string =>
  error === 'invalid_code'
    ? 'a single sign-on failed: the issuer gave no tokens, so check TOLLGATE_OIDC_CLIENT_ID and ' +
      'TOLLGATE_OIDC_CLIENT_SECRET'
    : 'a single sign-on failed';

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function withoutSecrets(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return answer;
  return Object.fromEntries(Object.entries(answer).filter(([name]) => !SECRET_FIELDS.includes(name)));
}

/** The library's messages are for people, and name no inner thing. */
function failureOf({ status, headers }: Response, answer: unknown): ConsoleError {
  const { message } = (answer ?? {}) as { message?: unknown };
  const text = typeof message === 'string' ? `${message.replace(/\.$/, '')}.` : undefined;
  if (status === 429)
    return new ConsoleError('rate_limited', undefined, { 'retry-after': headers.get('x-retry-after') ?? '60' });
  if (status >= 500) return new ConsoleError('internal_error');
  const code: ConsoleErrorCode = status === 401 ? 'invalid_credentials' : 'sign_in_failed';
  return new ConsoleError(code, text);
}
