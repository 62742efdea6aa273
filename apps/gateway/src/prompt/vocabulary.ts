import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The tokens of an encoding. A token's rank is its place. */
export interface Vocabulary {
  /** The bytes of each token. 0: no token has this rank. */
  lengths: Uint8Array;
  /** The bytes of all tokens, one after the other. */
  bytes: Uint8Array;
  /** The ranks of the two tokens that each token of three or more bytes is made of. Two zeros: not known yet. */
  parts: Uint32Array;
}

const RANK_BYTES = Uint32Array.BYTES_PER_ELEMENT;
/** Its two parts and its length. */
const BYTES_PER_TOKEN = 2 * RANK_BYTES + 1;

/** @param tokens by rank; a token that is not valid UTF-8 is given as its bytes */
export function vocabularyOf(tokens: readonly (string | readonly number[] | undefined)[]): Vocabulary {
  const encoded = Array.from(tokens, (token = '') => Buffer.from(token as string));
  const longest = encoded.reduce((length, token) => Math.max(length, token.length), 0);
  if (longest > 0xff) throw new Error(`a token has ${longest} bytes`);
  return {
    lengths: Uint8Array.from(encoded, ({ length }) => length),
    bytes: Buffer.concat(encoded),
    parts: new Uint32Array(2 * encoded.length),
  };
}

/** Where the build writes an encoding. Sources find it there too. */
export const vocabularyFile = (encoding: string) =>
  join(__dirname, '..', '..', 'dist', 'prompt', `${encoding}.vocabulary`);

/**
 * The content of the file is the number of tokens, then the parts, the lengths and the bytes. It is moved to its place
 * when it is complete.
 */
export function writeVocabulary(file: string, { lengths, bytes, parts }: Vocabulary): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(
    draft,
    Buffer.concat([Buffer.from(Uint32Array.of(lengths.length).buffer), asBytes(parts), lengths, bytes]),
  );
  renameSync(draft, file);
}

/** Throws an error with the name of the file if it is not one that `writeVocabulary` has completed. */
export function readVocabulary(file: string): Vocabulary {
  // A separate buffer, in which the ranks are at multiples of their size.
  const { buffer } = new Uint8Array(readFileSync(file));
  const damaged = () => new Error(`${file} is damaged: it has ${buffer.byteLength} bytes. Build again.`);
  if (buffer.byteLength < RANK_BYTES) throw damaged();
  const count = new Uint32Array(buffer, 0, 1)[0]!;
  if (buffer.byteLength < RANK_BYTES + count * BYTES_PER_TOKEN) throw damaged();
  const parts = new Uint32Array(buffer, RANK_BYTES, 2 * count);
  const lengths = new Uint8Array(buffer, RANK_BYTES + parts.byteLength, count);
  const bytes = new Uint8Array(buffer, lengths.byteOffset + count);
  if (bytes.length !== lengths.reduce((sum, length) => sum + length, 0)) throw damaged();
  return { parts, lengths, bytes };
}

const asBytes = ({ buffer, byteOffset, byteLength }: Uint32Array) => new Uint8Array(buffer, byteOffset, byteLength);
