import { isIP } from 'node:net';

/** The most bytes of a header of version 2, with extensions of the sender. */
const MAX_HEADER_BYTES = 4_096;
const MAX_LINE_BYTES = 107;
const LINE = Buffer.from('PROXY ');
const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const FIXED_BYTES = 16;
const LOCAL = 0x20;
const PROXIED = 0x21;
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 0x11: 4, 0x21: 16 };

export type ProxyHeader =
  /** The bytes so far may be the beginning of a header. */
  | { kind: 'incomplete' }
  /** The connection begins with something else. */
  | { kind: 'none' }
  | { kind: 'malformed' }
  /** `address` null: the proxy speaks for itself, or does not know the client. */
  | { kind: 'header'; address: string | null; bytes: number };

/** Reads the header of HAProxy's PROXY protocol, version 1 or 2, at the beginning of a connection. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (beginsLike(bytes, LINE)) return bytes.length < LINE.length ? { kind: 'incomplete' } : readLine(bytes);
  if (beginsLike(bytes, SIGNATURE)) return bytes.length < FIXED_BYTES ? { kind: 'incomplete' } : readBinary(bytes);
  return { kind: 'none' };
}

/** As far as there are bytes. */
function beginsLike(bytes: Buffer, prefix: Buffer): boolean {
  const length = Math.min(bytes.length, prefix.length);
  return bytes.compare(prefix, 0, length, 0, length) === 0;
}

function readLine(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_LINE_BYTES).indexOf('\r\n');
  if (end < 0) return { kind: bytes.length < MAX_LINE_BYTES ? 'incomplete' : 'malformed' };
  const [, family = '', address = '', ...rest] = bytes.toString('latin1', 0, end).split(' ');
  if (family === 'UNKNOWN') return { kind: 'header', address: null, bytes: end + 2 };
  const version = { TCP4: 4, TCP6: 6 }[family];
  if (version === undefined || isIP(address) !== version || rest.length !== 3) return { kind: 'malformed' };
  return { kind: 'header', address, bytes: end + 2 };
}

function readBinary(bytes: Buffer): ProxyHeader {
  const [command, family] = [bytes[12]!, bytes[13]!];
  const length = FIXED_BYTES + bytes.readUInt16BE(14);
  if ((command !== LOCAL && command !== PROXIED) || length > MAX_HEADER_BYTES) return { kind: 'malformed' };
  if (bytes.length < length) return { kind: 'incomplete' };
  const size = ADDRESS_BYTES[family];
  if (command === LOCAL || size === undefined) return { kind: 'header', address: null, bytes: length };
  if (length < FIXED_BYTES + 2 * size + 4) return { kind: 'malformed' };
  return { kind: 'header', address: textOf(bytes.subarray(FIXED_BYTES, FIXED_BYTES + size)), bytes: length };
}

function textOf(address: Buffer): string {
  if (address.length === 4) return address.join('.');
  return Array.from({ length: 8 }, (_, i) => address.readUInt16BE(2 * i).toString(16)).join(':');
}
