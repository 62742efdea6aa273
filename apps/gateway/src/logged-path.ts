import { CREDENTIAL_LIKE } from '@tollgate/contracts';

const HIDDEN = '[hidden]';
const MAX_CHARS = 200;
/** An escape may itself be escaped. */
const MAX_DECODINGS = 3;

/**
 * The part of a request's target that a log may show: its path without the query. Segments that look like a credential
 * are hidden, percent-encoded or not.
 */
export function loggedPath(url: string): string {
  // An absolute target may contain a user name and a password.
  if (!url.startsWith('/')) return HIDDEN;
  const path = url
    .split(/[?#]/, 1)[0]!
    .slice(0, MAX_CHARS)
    .split('/')
    .map((segment) => (CREDENTIAL_LIKE.test(decoded(segment)) ? HIDDEN : segment))
    .join('/');
  // A credential may be spread over segments.
  return CREDENTIAL_LIKE.test(decoded(path)) ? HIDDEN : path;
}

function decoded(text: string): string {
  let now = text;
  for (let time = 0; time < MAX_DECODINGS; time++) {
    const next = now.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
    if (next === now) break;
    now = next;
  }
  return now;
}
