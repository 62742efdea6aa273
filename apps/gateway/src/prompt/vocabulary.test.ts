import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BytePairs } from './byte-pairs';
import { ENCODINGS } from './tokenizer';
import { readVocabulary, vocabularyFile, vocabularyOf, writeVocabulary, type Vocabulary } from './vocabulary';

/** Compared as bytes, which takes a hundredth of the time of a comparison by elements. */
const same = (one: Uint8Array | Uint32Array, other: Uint8Array | Uint32Array) =>
  Buffer.from(one.buffer, one.byteOffset, one.byteLength).equals(
    Buffer.from(other.buffer, other.byteOffset, other.byteLength),
  );

it.each(ENCODINGS)('the vocabulary of %s that the build wrote is the one of the library', (encoding) => {
  const { default: tokens } = createRequire(__filename)(`gpt-tokenizer/bpeRanks/${encoding}`) as {
    default: (string | number[])[];
  };
  const expected = vocabularyOf(tokens);
  const built = readVocabulary(vocabularyFile(encoding));
  const differing = () => (['lengths', 'bytes', 'parts'] as const).filter((of) => !same(built[of], expected[of]));
  // Its parts are not known yet.
  expect(differing()).toEqual(['parts']);
  new BytePairs(expected);
  expect(differing()).toEqual([]);
});

it('a vocabulary with a token that cannot be made of two others is refused', () => {
  const letters: Vocabulary = vocabularyOf(['a', 'b', 'c', 'ab', 'cba']);
  expect(() => new BytePairs(letters)).toThrow('token 4 is not made of two with lower ranks');
});

it('a token is at most 255 bytes long', () => {
  expect(() => vocabularyOf(['a', 'a'.repeat(256)])).toThrow('a token has 256 bytes');
});

it('a file that is shorter or longer than its tokens is refused by its name', () => {
  const directory = mkdtempSync(join(tmpdir(), 'vocabulary-'));
  try {
    const file = join(directory, 'a.vocabulary');
    const written = vocabularyOf(['a', 'b', 'ab']);
    writeVocabulary(file, written);
    expect(readVocabulary(file)).toEqual({ ...written, bytes: new Uint8Array(written.bytes) });
    const whole = readFileSync(file);
    for (const damaged of [Buffer.alloc(0), whole.subarray(0, 3), whole.subarray(0, 20), whole.subarray(0, -1)]) {
      writeFileSync(file, damaged);
      expect(() => readVocabulary(file)).toThrow(`${file} is damaged: it has ${damaged.length} bytes`);
    }
    writeFileSync(file, Buffer.concat([whole, Buffer.alloc(1)]));
    expect(() => readVocabulary(file)).toThrow(`${file} is damaged`);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
