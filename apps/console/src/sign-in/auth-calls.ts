import type { FastifyRequest } from 'fastify';
import { jsonOf } from '../http/body';
import { ConsoleError } from '../http/errors';
import { OIDC_PROVIDER } from './oidc';

export const HOME = '/console/';
export const CALLBACK = 'GET /callback/oidc';
export const SIGN_IN_BY_PASSWORD = 'POST /sign-in/email';
export const CHANGE_PASSWORD = 'POST /change-password';
/** Its answer says how the browser asks for a passkey. */
export const PASSKEY_OPTIONS = 'GET /passkey/generate-authenticate-options';

interface Body {
  /** The fields of the caller that are passed on. */
  fields: readonly string[];
  /** What the console adds, whatever the caller sent. */
  own?: Readonly<Record<string, unknown>>;
}

/**
 * The writes of the library that browsers may make, with the fields that they may send. The library takes more fields
 * than the pages use: `trustDevice` would let a browser skip the second factor for a month.
 */
export const WRITES: Readonly<Record<string, Body>> = {
  [SIGN_IN_BY_PASSWORD]: { fields: ['email', 'password'] },
  // The caller's fields could ask for other scopes, or lead elsewhere.
  'POST /sign-in/social': { fields: [], own: { provider: OIDC_PROVIDER, callbackURL: HOME } },
  'POST /link-social': { fields: [], own: { provider: OIDC_PROVIDER, callbackURL: '/console/account' } },
  'POST /sign-out': { fields: [] },
  [CHANGE_PASSWORD]: { fields: ['currentPassword', 'newPassword'], own: { revokeOtherSessions: true } },
  'POST /two-factor/enable': { fields: ['password'] },
  'POST /two-factor/disable': { fields: ['password'] },
  'POST /two-factor/verify-totp': { fields: ['code'] },
  'POST /two-factor/verify-backup-code': { fields: ['code'] },
  'POST /passkey/verify-registration': { fields: ['response', 'name'] },
  'POST /passkey/verify-authentication': { fields: ['response'] },
};

/** The calls of the library that browsers may make. All others do not exist: some would show a session's secret. */
export const AUTH_CALLS: ReadonlySet<string> = new Set([
  ...Object.keys(WRITES),
  ...[CALLBACK, PASSKEY_OPTIONS, 'GET /passkey/generate-register-options', 'GET /passkey/list-user-passkeys'],
]);

/** Those that change the account of the person who is signed in. */
export const ACCOUNT_CALLS: ReadonlySet<string> = new Set([
  CHANGE_PASSWORD,
  'POST /two-factor/disable',
  'POST /two-factor/verify-totp',
  'POST /passkey/verify-registration',
]);

/** Those that check the password of the person who is signed in. */
export const OWN_PASSWORD_CALLS: ReadonlySet<string> = new Set([
  CHANGE_PASSWORD,
  'POST /two-factor/enable',
  'POST /two-factor/disable',
]);

/** The body that the library gets, as JSON. Null: a read has none. Errors: invalid_json, invalid_request. */
export function bodyOf(call: string, sent: FastifyRequest['body']): string | null {
  const write = WRITES[call];
  if (!write) return null;
  const body = parsed(sent as Buffer | undefined);
  const passed = write.fields.filter((name) => Object.hasOwn(body, name)).map((name) => [name, body[name]] as const);
  return JSON.stringify({ ...Object.fromEntries(passed), ...write.own });
}

function parsed(sent: Buffer | undefined): Record<string, unknown> {
  if (sent === undefined || sent.length === 0) return {};
  const body = jsonOf(sent);
  // The same error as for a text that is no JSON.
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new ConsoleError('invalid_json');
  return body as Record<string, unknown>;
}
