import { UnavailableError } from '@tollgate/contracts';
import { settlesWithin } from '@tollgate/runtime';
import { callInProgress } from './account-changes';

/** How long a sign-in waits for each answer of the issuer. */
export const ISSUER_LIMIT_MS = 8_000;

/** No subject at an issuer without spaces is taken for one at another. */
const SEPARATOR = ' ';

/**
 * Null: the issuer gave no answer in time, or none that can be read. Then the call fails as unavailable, and changes
 * nothing.
 */
export async function withinLimit<T>(answer: Promise<T>): Promise<T | null> {
  const call = callInProgress();
  const unavailable = (what: string) => call.failed(new UnavailableError(`the issuer of OpenID Connect ${what}`));
  if (!(await settlesWithin(ISSUER_LIMIT_MS, answer))) {
    unavailable(`gave no answer in ${ISSUER_LIMIT_MS} ms`);
    return null;
  }
  try {
    return await answer;
  } catch (error) {
    // A refusal by the issuer is an object of the library.
    if (!(error instanceof Error)) throw error;
    unavailable(`could not be asked: ${(error.cause instanceof Error ? error.cause : error).message}`);
    return null;
  }
}

/** One issuer with and without a slash at its end has one discovery document, so it is one issuer. */
export const withoutSlash = (issuer: string): string => issuer.replace(/\/$/, '');

export const discoveryUrlOf = (issuer: string): string => `${withoutSlash(issuer)}/.well-known/openid-configuration`;

/** The stored form of a subject: see `migrations/007_first_issuer.sql`. */
export const accountIdOf = (subject: string, issuer: string, first: string): string =>
  issuer === first && !subject.includes(SEPARATOR) ? subject : issuer + SEPARATOR + subject;

/** The issuer of a subject in its stored form. */
export const issuerOf = (accountId: string, first: string): string =>
  accountId.includes(SEPARATOR) ? accountId.split(SEPARATOR, 1)[0]! : first;

/** The subject of an ID token that was verified. Undefined: there is no token, or it has none. */
export function subjectOf(idToken: string | undefined): unknown {
  if (idToken === undefined) return undefined;
  const [, payload = ''] = idToken.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub?: unknown }).sub;
}
