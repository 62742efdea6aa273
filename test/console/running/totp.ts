import { createHmac } from 'node:crypto';

const STEP_MS = 30_000;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/**
 * The code that an authenticator shows for an `otpauth:` address (RFC 6238, six digits): now, or after some steps of
 * 30 s. The console accepts the code of the next step, too.
 */
export function totpOf(uri: string, later = 0): string {
  const bits = [...new URL(uri).searchParams.get('secret')!]
    .map((char) => ALPHABET.indexOf(char).toString(2).padStart(5, '0'))
    .join('');
  const key = Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / STEP_MS) + later));
  const mac = createHmac('sha1', key).update(counter).digest();
  const code = mac.readUInt32BE(mac.at(-1)! & 0xf) & 0x7fffffff;
  return String(code % 1_000_000).padStart(6, '0');
}
