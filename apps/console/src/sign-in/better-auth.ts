import { passkey } from '@better-auth/passkey';
import { validateName } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import { betterAuth } from 'better-auth';
import { genericOAuth, twoFactor } from 'better-auth/plugins';
import type { Pool } from 'pg';
import { ConsoleError } from '../http/errors';
import type { OidcOptions } from '../options';
import { accountCall, accountHooks, callInProgress } from './account-changes';
import { CODE_DIGITS, CODE_STEP_S } from './code-steps';
import { issuerAccounts } from './issuer-accounts';
import { noteOutage } from './library-outages';
import { OIDC_PROVIDER, providerOf, providerSignIn } from './oidc';
import { codesWorkOnce } from './used-codes';

export const AUTH_PATH = '/console/api/auth';
/** The header in which we tell the library the client's address. A header of this name from outside is overwritten. */
export const CLIENT_ADDRESS_HEADER = 'x-tollgate-client';

const DAY_S = 24 * 60 * 60;
const SESSION_S = 7 * DAY_S;
/** A request within this time of the last extension does not write to the database. */
const SESSION_EXTENSION_S = DAY_S;
/** What opens or ends an account for good needs a sign-in within this time, where no password is asked for. */
export const FRESH_S = 10 * 60;
/** The library's code for an older sign-in. */
export const NOT_FRESH = 'SESSION_NOT_FRESH';
/** Wrong codes in a row, also backup codes, after which an account accepts none for CODES_LOCKED_S. */
const MAX_WRONG_CODES = 10;
export const CODES_LOCKED_S = 15 * 60;
/** The library's code for such an account. */
export const CODES_LOCKED = 'ACCOUNT_TEMPORARILY_LOCKED';
/** Tries of one address in RATE_WINDOW_S. */
const MAX_TRIES = 10;
const RATE_WINDOW_S = 60;
const MAX_OTHER_CALLS = 120;
export const MIN_PASSWORD_CHARS = 12;
export const MAX_PASSWORD_CHARS = 128;
const MAX_PASSKEY_NAME_CHARS = 100;
const NOT_VERIFIED = 'The passkey must check who you are, by fingerprint, face or PIN.';

export interface SignInLibraryOptions {
  pool: Pool;
  secret: string;
  /** The public origin. */
  origin: string;
  oidc: OidcOptions | null;
  /** Without the issuer's answer, nobody signs in there. The cookies are the same. */
  asksIssuer: boolean;
}

/**
 * better-auth on our schema. It keeps users, passwords (scrypt), sessions, TOTP and passkeys. Nobody can sign up: an
 * account comes from an invitation, or from an allowed domain of OpenID Connect.
 */
export function signInLibrary({ pool, secret, origin, oidc, asksIssuer }: SignInLibraryOptions) {
  const isSecure = origin.startsWith('https:');
  const tries = { window: RATE_WINDOW_S, max: MAX_TRIES };
  return betterAuth({
    appName: 'Tollgate',
    baseURL: origin,
    basePath: AUTH_PATH,
    secret,
    database: pool,
    trustedOrigins: [origin],
    telemetry: { enabled: false },
    logger: { level: 'error', log: (_level, message, ...details) => note(message, details) },
    onAPIError: { errorURL: '/console/sign-in' },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: MIN_PASSWORD_CHARS,
      maxPasswordLength: MAX_PASSWORD_CHARS,
    },
    databaseHooks: {
      ...accountHooks(() => providerSignIn.getStore()?.email ?? ''),
      session: {
        create: {
          after: async ({ id, userId }) => {
            const signIn = providerSignIn.getStore();
            if (signIn) signIn.userId = userId;
            const call = accountCall.getStore();
            if (call) Object.assign(call, { openedFor: userId, openedSession: id });
            // They have addresses of people, and the library deletes only those that are used again.
            await pool.query('DELETE FROM "session" WHERE "expiresAt" <= now()');
          },
        },
      },
    },
    session: { expiresIn: SESSION_S, updateAge: SESSION_EXTENSION_S, freshAge: FRESH_S },
    account: {
      accountLinking: { enabled: true, trustedProviders: oidc ? [OIDC_PROVIDER] : [] },
    },
    rateLimit: {
      enabled: true,
      storage: 'database',
      window: RATE_WINDOW_S,
      max: MAX_OTHER_CALLS,
      customRules: {
        '/sign-in/*': tries,
        '/two-factor/*': tries,
        '/passkey/verify-authentication': tries,
        '/change-password': tries,
      },
    },
    advanced: {
      // Not `useSecureCookies`, whose prefix is `__Secure-`: `__Host-` also forbids a Domain and another Path.
      useSecureCookies: false,
      cookiePrefix: isSecure ? '__Host-tollgate' : 'tollgate',
      // A provider sends people back from its own site, and a browser sends no strict cookie then.
      defaultCookieAttributes: { secure: isSecure, sameSite: oidc ? 'lax' : 'strict', httpOnly: true, path: '/' },
      ipAddress: { ipAddressHeaders: [CLIENT_ADDRESS_HEADER] },
    },
    plugins: [
      codesWorkOnce(pool),
      twoFactor({
        issuer: 'Tollgate',
        totpOptions: { period: CODE_STEP_S, digits: CODE_DIGITS },
        accountLockout: { maxFailedAttempts: MAX_WRONG_CODES, durationSeconds: CODES_LOCKED_S },
      }),
      passkey({
        rpID: new URL(origin).hostname,
        rpName: 'Tollgate',
        origin,
        authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
        registration: {
          afterVerification: ({ ctx, verification }) =>
            addPasskey(ctx.body as { name?: unknown }, verification.registrationInfo?.userVerified),
        },
        authentication: {
          afterVerification: ({ verification }) => requireVerified(verification.authenticationInfo.userVerified),
        },
      }),
      genericOAuth({ config: oidc && asksIssuer ? [providerOf(oidc)] : [] }),
      issuerAccounts(pool, oidc?.issuer ?? ''),
    ],
  });
}

export type SignInLibrary = ReturnType<typeof signInLibrary>;

/** Just before a passkey is stored. */
async function addPasskey(body: { name?: unknown }, isVerified: boolean | undefined): Promise<void> {
  requireVerified(isVerified);
  const call = callInProgress();
  const { name } = body;
  const isText = typeof name === 'string' && name.length <= MAX_PASSKEY_NAME_CHARS;
  const problem = isText ? validateName(name) : `name must be a text of at most ${MAX_PASSKEY_NAME_CHARS} characters.`;
  if (problem !== null) throw call.failed(new ConsoleError('invalid_name', problem));
  await call.own('passkey.add', { after: { passkey: name } });
}

/**
 * A passkey signs in without a password and a code, so it must be both factors: the device, and the fingerprint or PIN
 * of its person. The library itself accepts a mere touch.
 */
function requireVerified(isVerified: boolean | undefined): void {
  if (isVerified !== true) throw callInProgress().failed(new ConsoleError('sign_in_failed', NOT_VERIFIED));
}

/** The caller of a sign-in at the provider logs it in one line. */
function note(message: string, details: readonly unknown[]): void {
  if (noteOutage(details)) return;
  const signIn = providerSignIn.getStore();
  if (!signIn) logger('console').error(message);
  else if (message !== '') signIn.reason = message;
}
