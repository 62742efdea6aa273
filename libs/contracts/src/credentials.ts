import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** `key`: an inference key, `sk-svc-…`. `token`: a management token, `fma_…`. Both belong to a tenant. */
export type CredentialKind = 'key' | 'token';
/** What is minted with a prefix and a checksum. `operator`: an operator token, `tgo_…`, which belongs to no tenant. */
export type MintedKind = CredentialKind | 'operator';

export const CREDENTIAL_PREFIX: Record<MintedKind, string> = { key: 'sk-svc-', token: 'fma_', operator: 'tgo_' };

/** What a text has that may be a credential: a prefix, in any case. */
export const CREDENTIAL_LIKE = new RegExp(Object.values(CREDENTIAL_PREFIX).join('|'), 'i');

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_BYTES = 32;
const SECRET_CHARS = 43;
const CHECKSUM_CHARS = 6;

/**
 * A new credential value: prefix, 32 random bytes in base62 (43 characters), CRC32 of everything before it in base62
 * (6). It exists in plain text only at this moment.
 */
export function mintCredential(kind: MintedKind): { value: string; hash: string; last4: string } {
  const body = CREDENTIAL_PREFIX[kind] + base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_CHARS);
  const value = body + checksum(body);
  return { value, hash: hashCredential(value), last4: value.slice(-4) };
}

/**
 * Whether the value has the form and the checksum of this kind. Refuses malformed values without a look-up. It does not
 * say whether the value was ever issued.
 */
export function isWellFormedCredential(kind: MintedKind, value: string): boolean {
  const prefix = CREDENTIAL_PREFIX[kind];
  if (value.length !== prefix.length + SECRET_CHARS + CHECKSUM_CHARS || !value.startsWith(prefix)) return false;
  const body = value.slice(0, -CHECKSUM_CHARS);
  return checksum(body) === value.slice(-CHECKSUM_CHARS);
}

/** SHA-256 of the whole value, 64 hex digits. Only this hash is sent and stored. */
export function hashCredential(value: string): string {
  return hash('sha256', value, 'hex');
}

function checksum(body: string): string {
  // A number, as arithmetic on bigints is slow, and each request is checked.
  let out = '';
  for (let rest = crc32(body), i = 0; i < CHECKSUM_CHARS; i += 1) {
    out = BASE62[rest % 62]! + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

function base62(value: bigint, width: number): string {
  let out = '';
  for (let rest = value; rest > 0n; rest /= 62n) out = BASE62[Number(rest % 62n)] + out;
  return out.padStart(width, '0');
}
