/** Beginnings of credentials (contracts/credentials.ts), in whatever case. */
const CREDENTIAL = /sk-svc-|fma_/i;
const HIDDEN = '[hidden]';
const MAX_CHARS = 200;
/** An escape may be escaped itself. */
const MAX_DECODINGS = 3;

/**
 * What a log may show of a request's target: its path, without a query, and without what looks like a credential that
 * somebody put there, escaped or not.
 */
export function loggedPath(url: string): string {
  // An absolute target may name a user and a password.
  if (!url.startsWith('/')) return HIDDEN;
  const path = url
    .split(/[?#]/, 1)[0]!
    .slice(0, MAX_CHARS)
    .split('/')
    .map((segment) => (CREDENTIAL.test(decoded(segment)) ? HIDDEN : segment))
    .join('/');
  // One that is spread over segments.
  return CREDENTIAL.test(decoded(path)) ? HIDDEN : path;
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
