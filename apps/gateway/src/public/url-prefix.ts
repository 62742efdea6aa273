import { MANAGEMENT_ROOT } from '../management/prefix';

/** Escaped letters and `_`. They mean the same as the letters (RFC 3986, 2.3), and the router decodes them. */
const ESCAPED_LETTER = /%[4-7][0-9a-f]/gi;

export function isBelow(prefix: string, url: string): boolean {
  return url.startsWith(prefix) && (url.length === prefix.length || '/?'.includes(url[prefix.length]!));
}

/** The management API answers every path below its root, also those without its version. */
export function isManagement({ url }: { url: string }): boolean {
  return isBelow(MANAGEMENT_ROOT, url.replace(ESCAPED_LETTER, decodeURIComponent));
}
