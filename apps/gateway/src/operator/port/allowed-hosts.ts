import { isIP } from 'node:net';

/**
 * Whether a `Host` may name the operator port: an address, localhost, or one of these names. Others get 421. This stops
 * DNS rebinding: a web page can resolve its own name to 127.0.0.1, but its requests still have that name as `Host`. A
 * request without a `Host` (HTTP/1.0) does not come from a browser.
 */
export function isAllowedHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return true;
  const name = host.replace(/:\d{0,5}$/, '').toLowerCase();
  if (/^\[[^\]]*\]$/.test(name)) return isIP(name.slice(1, -1)) === 6;
  const plain = name.replace(/\.$/, '');
  return isIP(plain) === 4 || plain === 'localhost' || names.some((allowed) => allowed.toLowerCase() === plain);
}
