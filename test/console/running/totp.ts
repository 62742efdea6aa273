import { createHmac } from 'node:crypto';

const STEP_MS = 30_000;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The code that an authenticator shows now for an `otpauth:` address (RFC 6238, six digits). */
export function totpOf(uri: string): string {
  const bits = [...new URL(uri).searchParams.get('secret')!]
    .map((char) => ALPHABET.indexOf(char).toString(2).padStart(5, '0'))
    .join('');
  const key = Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / STEP_MS)));
  const mac = createHmac('sha1', key).update(counter).digest();
  const code = mac.readUInt32BE(mac.at(-1)! & 0xf) & 0x7fffffff;
  return String(code % 1_000_000).padStart(6, '0');
}
