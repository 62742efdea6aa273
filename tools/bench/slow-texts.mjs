// Searches for texts that are slow to tokenize: a seeded random search over alphabets and their combinations. Each text
// is measured per byte and compared with plain English in the same run. The slowest are changed a little and tried
// again. A test of the gateway uses the texts that were found (slow-texts.json).
//   node tools/bench/slow-texts.mjs [--seed 1] [--rounds 400] [--encoding o200k_base] [--library] [--write]
// --library measures gpt-tokenizer's own counting on 4 KB, because longer texts take minutes. --write adds the slowest
// to slow-texts.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const CORPUS = new URL('slow-texts.json', import.meta.url);
const ENCODINGS = ['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base'];
const REPEATS = 3;
const KEPT = 12;

const ALPHABETS = [
  [...'abcdefghijklmnopqrstuvwxyz'],
  [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'],
  [...'0123456789'],
  [...'0123456789abcdef'],
  [...'+/=-_'],
  [...'!?.,;:()[]{}<>@#$%^&*|~`"\\'],
  [' ', '\n', '\t', '\r', '\r\n', '\u00a0', '\u2028', '\u3000'],
  ["'s", "'t", "'ll", "'re", "'D", "'"],
  ['\u0301', '\u0327', '\u20dd', '\u0e31'],
  [...'的一是不了人我在有他这为之大来以个中上们'],
  [...'ابتثجحخدذرزسشصضطظعغفقكلمنهوي'],
  [...'अआइईउऊऋएऐओऔकखगघङ्'],
  ['😀', '👩', '\u200d', '👧', '🏽', '\ufe0f', '🇩', '🇪'],
  ['\ud800', '\udc00', '\0', '\u0007', '\u{10ffff}', '\u{2a6d6}', '\ufffd'],
  ['ǅ', 'ʰ', 'ª', 'ß', 'İ', 'ſ', '²', '½', 'Ⅷ'],
];

/** mulberry32 */
export function random(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * A text of about `chars` characters: the units repeated in order, or picked at random if there is a seed.
 */
export function makeText({ units, seed }, chars) {
  const next = seed === null ? null : random(seed);
  const parts = [];
  for (let i = 0, length = 0; length < chars; i++) {
    const unit = units[next ? Math.floor(next() * units.length) : i % units.length];
    parts.push(unit);
    length += unit.length;
  }
  return parts.join('');
}

/** Plain English with names and numbers. */
export const ENGLISH = readFileSync(new URL('../../LICENSE', import.meta.url), 'utf8');

function newSpec(next) {
  const pick = (list) => list[Math.floor(next() * list.length)];
  const count = 1 + Math.floor(next() * 4);
  const units = [];
  for (let i = 0; i < count; i++) {
    const alphabet = pick(ALPHABETS);
    const few = next() < 0.5 ? [pick(alphabet)] : alphabet;
    // One repeated character, or the characters themselves.
    if (next() < 0.4) units.push(pick(few).repeat(1 + Math.floor(next() ** 3 * 300)));
    else units.push(...few);
  }
  return { units, seed: next() < 0.3 ? null : Math.floor(next() * 2 ** 31) };
}

function changed({ units, seed }, next) {
  const other = newSpec(next);
  const mixed = next() < 0.5 ? [...units, ...other.units] : units.filter(() => next() < 0.8);
  return { units: mixed.length === 0 ? other.units : mixed.slice(0, 64), seed: next() < 0.5 ? seed : other.seed };
}

/** CPU time, because the machine may run other programs. */
function nanosPerByte(count, text) {
  let least = Infinity;
  for (let i = 0; i < REPEATS; i++) {
    const from = process.cpuUsage();
    count(text);
    const { user, system } = process.cpuUsage(from);
    least = Math.min(least, user + system);
  }
  return (least * 1_000) / Buffer.byteLength(text);
}

/** @returns the slowest texts, with their ratio to English, and the time per byte of English */
export function search({ count, seed, rounds, chars }) {
  const next = random(seed);
  const english = nanosPerByte(count, makeText({ units: [ENGLISH], seed: null }, chars).slice(0, chars));
  let found = [];
  for (let round = 0; round < rounds; round++) {
    const spec =
      found.length > 0 && next() < 0.5 ? changed(found[Math.floor(next() * found.length)], next) : newSpec(next);
    const ratio = nanosPerByte(count, makeText(spec, chars)) / english;
    found.push({ ...spec, ratio });
    found = found.sort((a, b) => b.ratio - a.ratio).slice(0, KEPT);
  }
  return { english, found };
}

function main() {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      rounds: { type: 'string', default: '400' },
      encoding: { type: 'string', multiple: true, default: ENCODINGS },
      library: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  });
  const corpus = JSON.parse(readFileSync(CORPUS, 'utf8'));
  const ours = require('../../apps/gateway/dist/prompt/tokenizer.js');
  for (const encoding of values.encoding) {
    const library = values.library && require(`gpt-tokenizer/encoding/${encoding}`);
    const count = (text) =>
      library ? library.countTokens(text, { disallowedSpecial: new Set() }) : ours.countTokens(encoding, text);
    count('warm');
    const chars = library ? 4_096 : 65_536;
    const { english, found } = search({ count, seed: Number(values.seed), rounds: Number(values.rounds), chars });
    console.log(`${encoding}: English ${english.toFixed(0)} ns a byte`);
    for (const { ratio, units, seed } of found)
      console.log(
        `  ${ratio.toFixed(1)} × ${seed === null ? 'in order' : 'at random'} ${JSON.stringify(units).slice(0, 100)}`,
      );
    for (const { units, seed } of found.slice(0, 3))
      corpus.push({ name: `found for ${encoding}, seed ${values.seed}`, units, seed });
  }
  if (values.write) writeFileSync(CORPUS, `${JSON.stringify(corpus, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
