import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';

/** Names for whole groups of addresses. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fe80::/10'],
};
const MAX_RANGES = 100;
/** Characters of a wrong entry that its message shows. */
const MAX_SHOWN = 50;
/** Only the last addresses of a longer list are read: each proxy adds one. */
const MAX_FORWARDED = 16;

export const TRUSTED_PROXIES_FORM =
  'addresses, ranges such as 10.0.0.0/8, `loopback` or `private`, separated by commas';

/** Whether a text is a list of proxies: addresses, ranges, `loopback` and `private`. */
export function areProxies(text: string): boolean {
  const ranges = rangesOf(text);
  return ranges.length <= MAX_RANGES && ranges.every(isRange);
}

/** What is wrong with a text that is no list of proxies: its first wrong entry, shortened. */
export function wrongProxies(text: string): string {
  const entry = rangesOf(text).find((range) => !isRange(range));
  if (entry === undefined) return `there are more than ${MAX_RANGES}`;
  return `${JSON.stringify(entry.length > MAX_SHOWN ? `${entry.slice(0, MAX_SHOWN)}…` : entry)} is none of them`;
}

function rangesOf(text: string): string[] {
  return text.split(',').flatMap((range) => GROUPS[range] ?? [range]);
}

function isRange(range: string): boolean {
  const [address = '', bits, ...more] = range.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/**
 * Finds the address of a client behind proxies. `X-Forwarded-For` is believed only from a trusted proxy, and only up to
 * the last address that is not one, because anyone can send that header.
 */
export class ClientAddresses {
  private readonly proxies: BlockList | null;

  /** @param proxies a list that `areProxies` accepts. Absent: no proxy is trusted */
  constructor(proxies?: string) {
    this.proxies = proxies === undefined ? null : new BlockList();
    for (const range of proxies === undefined ? [] : rangesOf(proxies)) {
      const [address = '', bits] = range.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.proxies!.addAddress(address, family);
      else this.proxies!.addSubnet(address, Number(bits), family);
    }
  }

  of({ socket, headers }: IncomingMessage): string {
    let address = plain(socket.remoteAddress ?? '');
    if (!this.isProxy(address)) return address;
    const forwarded = headers['x-forwarded-for'];
    const list = (typeof forwarded === 'string' ? forwarded.split(',') : []).slice(-MAX_FORWARDED);
    for (const text of list.reverse()) {
      const before = plain(withoutPort(text.trim()));
      if (isIP(before) === 0) return address;
      address = before;
      if (!this.isProxy(address)) return address;
    }
    return address;
  }

  /**
   * A hook `onRequest` of Fastify, which makes `request.ip` the address of the client. Fastify's own `trustProxy` would
   * keep a port, which is another one on each connection, and take any text for an address.
   */
  readonly setIp = (request: { raw: IncomingMessage }, _reply: unknown, done: () => void): void => {
    Object.defineProperty(request, 'ip', { value: this.of(request.raw) });
    done();
  };

  /** Whether an address belongs to a trusted proxy. */
  isProxy(address: string): boolean {
    const one = plain(address);
    const version = isIP(one);
    return this.proxies !== null && version !== 0 && this.proxies.check(one, version === 6 ? 'ipv6' : 'ipv4');
  }
}

/**
 * What limits of tries count as one address. The owner of one IPv6 address has all of its /64. Any other text is
 * returned without the zone of an address.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  return [...before, ...new Array<string>(zeros).fill('0'), ...after].slice(0, 4).join(':');
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(address: string): string {
  const [, v6, v4] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}

/** IPv4 without the prefix that it has on an IPv6 socket. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
