import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';

const compress = promisify<Buffer, object, Buffer>(deflateRaw);
const decompress = promisify<Buffer, object, Buffer>(inflateRaw);

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The length of a key's name, which is no secret. */
const NAME_BYTES = 6;
/** The text of a stream repeats itself, so even the fastest level compresses it to a tenth. */
const COMPRESSION = { level: 1 };
/** A body is hashed in parts of this size, with turns of the event loop in between. */
const HASHED_AT_ONCE_BYTES = 1024 * 1024;

/** What a secret is used for, each with its own key. */
interface Keys {
  name: string;
  sealing: Buffer;
  marking: Buffer;
}

/**
 * Seals the answers that are kept for repeats, and marks the bodies that they answer. Nothing of an answer or a body
 * can be read from what the store keeps. The first secret seals and marks; all of them open, so that secrets can be
 * exchanged while answers of the former one are kept.
 */
export class AnswerVault {
  private readonly keys: readonly Keys[];

  /** @param secrets the one in force, then former ones; at least one */
  constructor(secrets: readonly string[]) {
    this.keys = secrets.map(keysOf);
  }

  /** `name.mark` of what was asked for and the body. */
  async fingerprint(what: string, body: Buffer): Promise<string> {
    const [{ name, marking }] = this.keys as [Keys];
    return `${name}.${(await mark(marking, what, body)).toString('base64url')}`;
  }

  /** Whether the fingerprint is of this body. Null: no secret is left that could tell. */
  async matches(fingerprint: string, what: string, body: Buffer): Promise<boolean | null> {
    const [name, expected = ''] = fingerprint.split('.');
    const keys = this.keys.find((one) => one.name === name);
    if (!keys) return null;
    const found = await mark(keys.marking, what, body);
    const wanted = Buffer.from(expected, 'base64url');
    return wanted.length === found.length && timingSafeEqual(wanted, found);
  }

  /**
   * Compressed and encrypted, as text.
   * @param context is not stored. Only a caller that passes the same one can open the result
   */
  async seal(plain: Buffer, context: string): Promise<string> {
    const [{ name, sealing }] = this.keys as [Keys];
    const compressed = await compress(plain, COMPRESSION);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, sealing, nonce).setAAD(Buffer.from(context));
    const text = Buffer.concat([cipher.update(compressed), cipher.final()]);
    return `${name}.${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')}`;
  }

  /** Null: no secret opens it, it is not what was sealed, or the plain answer is larger than `maxBytes`. */
  async open(sealed: string, context: string, maxBytes: number): Promise<Buffer | null> {
    const [name, rest = ''] = sealed.split('.');
    const keys = this.keys.find((one) => one.name === name);
    const bytes = Buffer.from(rest, 'base64url');
    if (!keys || bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    const decipher = createDecipheriv(CIPHER, keys.sealing, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    try {
      const compressed = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      return await decompress(compressed, { maxOutputLength: maxBytes });
    } catch {
      // Not authentic, or larger than this version allows. The caller counts it as an answer that is not stored.
      return null;
    }
  }
}

function keysOf(secret: string): Keys {
  const derived = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, '', `tollgate idempotency: ${purpose}`, bytes));
  return {
    name: derived('name', NAME_BYTES).toString('base64url'),
    sealing: derived('sealing', KEY_BYTES),
    marking: derived('marking', KEY_BYTES),
  };
}

async function mark(key: Buffer, what: string, body: Buffer): Promise<Buffer> {
  const hmac = createHmac('sha256', key).update(`${what}\n`);
  for (let at = 0; at < body.length; at += HASHED_AT_ONCE_BYTES) {
    if (at > 0) await new Promise(setImmediate);
    hmac.update(body.subarray(at, at + HASHED_AT_ONCE_BYTES));
  }
  return hmac.digest();
}
