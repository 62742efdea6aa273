import { All, Controller, Get, Req, Res } from '@nestjs/common';
import { logger } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Anybody, originOf } from '../../access/allow';
import { Changes, type Origin } from '../../access/changes';
import { ProviderRoles } from '../../access/provider-roles';
import { OvertakenCalls } from '../../access/overtaken-calls';
import type { SignInOptions } from '../answers';
import { publicError } from '../../http/envelope';
import { ConsoleError, type ConsoleErrorCode } from '../../http/errors';
import { Mailer } from '../../http/mailer';
import { AccountCall, accountCall } from '../../sign-in/account-changes';
import {
  ACCOUNT_CALLS,
  AUTH_CALLS,
  bodyOf,
  CALLBACK,
  CHANGE_PASSWORD,
  HOME,
  OWN_PASSWORD_CALLS,
  PASSKEY_OPTIONS,
  SIGN_IN_BY_PASSWORD,
} from '../../sign-in/auth-calls';
import { AUTH_PATH, CLIENT_ADDRESS_HEADER, CODES_LOCKED, CODES_LOCKED_S, NOT_FRESH } from '../../sign-in/better-auth';
import { headersOf } from '../../sign-in/headers';
import { passingOutages } from '../../sign-in/library-outages';
import { providerSignIn, type ProviderSignIn } from '../../sign-in/oidc';
import { SignIn } from '../../sign-in/sign-in';
import { PasswordTries } from './password-tries';

/** Where a browser ends when a single sign-on failed, with the code of an error. A person must not see JSON. */
const FAILED = '/console/sign-in?error=';
/** Fields of the library's answers that hold the secret of a session. The cookie has it, scripts need not. */
const SECRET_FIELDS = ['token', 'session'];

/** Of the library, in calls of a signed-in person. */
const WRONG_PASSWORD = 'INVALID_PASSWORD';

const WAIT_WITH_CODES = 'Too many wrong codes for this account. Wait 15 minutes, or sign in by passkey.';

/** Passes the calls of AUTH_CALLS to the sign-in library, and its errors on in our envelope. */
@Controller('console/api')
export class AuthController {
  constructor(
    private readonly signIn: SignIn,
    private readonly roles: ProviderRoles,
    private readonly changes: Changes,
    private readonly mailer: Mailer,
    private readonly overtaken: OvertakenCalls,
    private readonly passwordTries: PasswordTries,
  ) {}

  @Get('sign-in-options')
  @Anybody()
  async options(): Promise<SignInOptions> {
    return { oidc: await this.signIn.hasOidc(), mail: this.mailer.isConfigured };
  }

  @All('auth/*')
  @Anybody()
  async call(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const url = new URL(request.url, this.signIn.origin);
    const call = `${request.method} ${url.pathname.slice(AUTH_PATH.length)}`;
    if (!AUTH_CALLS.has(call)) throw new ConsoleError('not_found');
    const headers = headersOf(request);
    headers.set(CLIENT_ADDRESS_HEADER, request.ip);
    const body = bodyOf(call, request.body);
    if (body !== null) headers.set('content-type', 'application/json');
    const asked = new Request(url, { method: request.method, headers, body });
    const since = await this.overtaken.now();
    const isOwn = ACCOUNT_CALLS.has(call) || OWN_PASSWORD_CALLS.has(call);
    const person = isOwn ? await this.signIn.sessionOf(headers) : null;
    const beforePassword = (userId: string) => this.overtaken.beforeChange(userId, since);
    const made = new AccountCall(this.changes, originOf(request), person, beforePassword);
    if (call === CALLBACK) return this.backFromProvider(asked, made, originOf(request), reply);
    const email = call === SIGN_IN_BY_PASSWORD ? emailOf(body) : ownPasswordOf(call, person);
    const ask = async () => {
      const answer = await this.answerOf(made, asked);
      return { answer, parsed: jsonOf(await answer.text()) };
    };
    const from = { email: email ?? '', cookies: request.headers.cookie, isSignedIn: person !== null };
    const { answer, parsed } = await (email === null ? ask() : this.passwordTries.limited(from, ask, isWrongPassword));
    const userId = made.openedFor ?? person?.userId;
    const passwordCall = { since, sessionId: made.openedSession, changes: call === CHANGE_PASSWORD };
    if (userId !== undefined && (await this.overtaken.end(userId, passwordCall)))
      throw new ConsoleError('invalid_credentials');
    if (passwordCall.changes && answer.ok && userId !== undefined) await this.overtaken.afterChange(userId);
    keepCookies(answer, reply);
    if (email !== null && answer.ok) reply.header('set-cookie', this.passwordTries.cookieFor(email));
    if (answer.status >= 400) throw failureOf(answer, parsed);
    const shown = withoutSecrets(parsed);
    // The library would accept a passkey without the fingerprint or PIN of its person, and asks for it only if
    // possible.
    void reply
      .code(200)
      .send(call === PASSKEY_OPTIONS ? { ...(shown as object), userVerification: 'required' } : shown);
  }

  /**
   * UnavailableError: the change could not be logged, so nothing was changed. If PostgreSQL is unavailable: the error
   * of its statement.
   */
  private async answerOf(made: AccountCall, asked: Request): Promise<Response> {
    const answer = await passingOutages(() => accountCall.run(made, () => this.signIn.auth.handler(asked)), hasFailed);
    if (made.failure !== undefined) throw made.failure;
    return answer;
  }

  /**
   * A person comes back from the provider: with roles and a session, or with an error for the sign-in page. What
   * auth cannot log is not made, so a person signs in again when auth is back.
   */
  private async backFromProvider(asked: Request, made: AccountCall, from: Origin, reply: FastifyReply): Promise<void> {
    const found: ProviderSignIn = {};
    try {
      const answer = await providerSignIn.run(found, () => this.answerOf(made, asked));
      if (found.userId !== undefined && found.groups !== undefined)
        await this.roles.set(found.userId, found.groups, from);
      if (answer.status >= 400) {
        const { code } = failureOf(answer, null);
        logger('console').warn({ error: code, reason: found.reason }, 'a single sign-on failed');
        return void reply
          .code(302)
          .header('location', this.ownPage(FAILED + code))
          .send();
      }
      const location = this.ownPage(answer.headers.get('location'));
      const error = new URL(location).searchParams.get('error');
      if (error !== null) logger('console').warn({ error, reason: found.reason }, hintOf(error));
      keepCookies(answer, reply);
      void reply.code(302).header('location', location).send();
    } catch (error) {
      if (publicError(error).code !== 'unavailable') throw error;
      logger('console').warn({ reason: String(error) }, 'a single sign-on failed: a service does not answer');
      void reply
        .code(302)
        .header('location', this.ownPage(`${FAILED}unavailable`))
        .send();
    }
  }

  /** A sign-in ends on a page of the console, whatever the caller asked for. */
  private ownPage(location: string | null): string {
    const { origin } = this.signIn;
    const url = new URL(location ?? HOME, origin);
    return url.origin === origin && url.pathname.startsWith(HOME) ? url.href : new URL(HOME, origin).href;
  }
}

/** Null: none was sent, and the library refuses the call. */
function emailOf(body: string | null): string | null {
  const { email } = (jsonOf(body ?? '') ?? {}) as { email?: unknown };
  return typeof email === 'string' ? email : null;
}

/** Whose password a call checks. Null: it checks none. */
const ownPasswordOf = (call: string, person: { email: string } | null): string | null =>
  OWN_PASSWORD_CALLS.has(call) && person !== null ? person.email : null;

/** A sign-in gets 401. */
const isWrongPassword = ({ answer, parsed }: { answer: Response; parsed: unknown }): boolean =>
  answer.status === 401 || (parsed as { code?: unknown } | null)?.code === WRONG_PASSWORD;

/** The callback tells the page for sign-in, not the status. */
const hasFailed = ({ status, headers }: Response): boolean =>
  status >= 400 || /[?&]error=/.test(headers.get('location') ?? '');

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
  const { code: reason, message } = (answer ?? {}) as { code?: unknown; message?: unknown };
  const text = typeof message === 'string' ? `${message.replace(/\.$/, '')}.` : undefined;
  if (reason === CODES_LOCKED)
    return new ConsoleError('rate_limited', WAIT_WITH_CODES, { 'retry-after': String(CODES_LOCKED_S) });
  if (status === 429)
    return new ConsoleError('rate_limited', undefined, { 'retry-after': headers.get('x-retry-after') ?? '60' });
  if (status >= 500) return new ConsoleError('internal_error');
  if (reason === NOT_FRESH) return new ConsoleError('sign_in_again');
  const code: ConsoleErrorCode = status === 401 ? 'invalid_credentials' : 'sign_in_failed';
  return new ConsoleError(code, text);
}
