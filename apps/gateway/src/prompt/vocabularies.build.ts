// Run by the build: writes the vocabulary of each encoding. Loading the tokens from the library takes 0.1 s, and
// finding their parts 0.2 s. Without the files, every start would spend this time.
import { createRequire } from 'node:module';
import { BytePairs } from './byte-pairs';
import { ENCODINGS } from './tokenizer';
import { vocabularyFile, vocabularyOf, writeVocabulary } from './vocabulary';

const load = createRequire(__filename);
for (const encoding of ENCODINGS) {
  const { default: tokens } = load(`gpt-tokenizer/bpeRanks/${encoding}`) as { default: (string | number[])[] };
  const vocabulary = vocabularyOf(tokens);
  new BytePairs(vocabulary);
  writeVocabulary(vocabularyFile(encoding), vocabulary);
}
