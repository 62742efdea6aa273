import { logger } from '@tollgate/runtime';

/** What the library says of an issuer that cannot be used. SignIn says it in one line, with the setting. */
const OF_THE_ISSUER = /^(Discovery fetch failed|Provider "[^"]*": (discovery|requires verified ID tokens))/;
/** The error of OAuth for a wrong client id or client secret. */
const WRONG_CLIENT = 'invalid_client';

/** The library's error lines in our log. `details` may hold answers of the issuer, so only their codes are logged. */
export function logLibraryError(message: string, details: readonly unknown[]): void {
  const log = logger('console');
  if (OF_THE_ISSUER.test(message)) return log.debug(message);
  const codes = details.flatMap(oauthError);
  if (codes.includes(WRONG_CLIENT))
    return log.error(
      'the OpenID Connect issuer refuses the console: correct TOLLGATE_OIDC_CLIENT_ID or TOLLGATE_OIDC_CLIENT_SECRET; ' +
        'people can sign in by password',
    );
  log.error({ reasons: [...codes, ...details.flatMap(reason)] }, message || 'a sign-in by OpenID Connect failed');
}

/** The error code in an answer of the issuer. */
function oauthError(detail: unknown): string[] {
  const { error } = (detail ?? {}) as { error?: { error?: unknown } | string };
  const code = typeof error === 'object' ? error?.error : error;
  return typeof code === 'string' ? [code] : [];
}

const reason = (detail: unknown): string[] =>
  detail instanceof Error && detail.message !== '' ? [detail.message] : [];
