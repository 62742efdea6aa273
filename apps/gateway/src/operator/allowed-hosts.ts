import { isIP } from 'node:net';

/**
 * Whether a `Host` may be meant for the operator port: an address, localhost, or one of these names. A page of the web
 * can point a name of its own at 127.0.0.1 and then ask as if it were from there (DNS rebinding); what it asks for it
 * asks under that name. Without a `Host` (HTTP/1.0) it is no browser.
 */
export function isAllowedHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return true;
  const name = host.replace(/:\d{0,5}$/, '').toLowerCase();
  if (/^\[[^\]]*\]$/.test(name)) return isIP(name.slice(1, -1)) === 6;
  const plain = name.replace(/\.$/, '');
  return isIP(plain) === 4 || plain === 'localhost' || names.some((allowed) => allowed.toLowerCase() === plain);
}
