import { anyCharacter, assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Tokenizer } from '../catalog/catalog';
import { forEachPiece } from './pieces';
import { countTokens, countWithin } from './tokenizer';

const SEED = 20_261_131;
const ENCODINGS = ['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base'] as const;
const ROOT = join(__dirname, '../../../..');
const MIB = 1024 * 1024;

interface Library {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
}
const libraries = new Map<Tokenizer, Library>();
/** The count of the library: correct, but not usable for texts of any size. */
function exactly(encoding: Tokenizer, text: string): number {
  let library = libraries.get(encoding);
  if (!library)
    libraries.set(encoding, (library = createRequire(__filename)(`gpt-tokenizer/encoding/${encoding}`) as Library));
  return library.countTokens(text, { disallowedSpecial: new Set() });
}

interface SlowText {
  name: string;
  units: string[];
  seed: number | null;
}
/** Texts that tools/bench/slow-texts.mjs found, and the first that an attacker would try. */
const CORPUS = JSON.parse(readFileSync(join(ROOT, 'tools/bench/slow-texts.json'), 'utf8')) as SlowText[];
const ENGLISH = readFileSync(join(ROOT, 'LICENSE'), 'utf8');

function makeText({ units, seed }: Omit<SlowText, 'name'>, chars: number): string {
  let state = seed ?? 0;
  const parts: string[] = [];
  for (let i = 0, length = 0; length < chars; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const unit = units[seed === null ? i % units.length : Math.floor((state / 2 ** 32) * units.length)]!;
    parts.push(unit);
    length += unit.length;
  }
  return parts.join('');
}

const LONG_CHARS = 64 * 1024;
const longTexts = new Map<SlowText, string>();
/** A text of LONG_CHARS, made once. */
function longText(slow: SlowText): string {
  const text = longTexts.get(slow) ?? makeText(slow, LONG_CHARS);
  longTexts.set(slow, text);
  return text;
}

/**
 * Removes byte order marks. The library drops them from the bytes that it looks up, and then counts too little or
 * throws.
 */
const withoutMarks = (text: string) => text.replaceAll('\ufeff', '');
const UNITS = [...new Set(CORPUS.flatMap(({ units }) => units))];
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom(...UNITS),
      fc.tuple(fc.constantFrom(...UNITS), fc.integer({ min: 1, max: 80 })).map(([unit, times]) => unit.repeat(times)),
      fc.constantFrom(
        ' the',
        ' Tokens',
        'HTTPServer',
        "it's",
        'WE’LL',
        '  \n\n    return',
        '<|endoftext|>',
        '12345',
        '\r\n',
      ),
      fc.string({ unit: anyCharacter, maxLength: 12 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => withoutMarks(parts.join('')));

describe.each(ENCODINGS)('counting tokens by %s', (encoding) => {
  it('is exact', async () => {
    await assertRuns(
      fc.property(anyText, (text) => {
        expect(countTokens(encoding, text)).toBe(exactly(encoding, text));
      }),
      { seed: SEED, leastRuns: 400 },
    );
    expect(countTokens(encoding, ENGLISH)).toBe(exactly(encoding, ENGLISH));
    for (const text of CORPUS) {
      const long = makeText(text, 1_500);
      expect([text.name, countTokens(encoding, long)]).toEqual([text.name, exactly(encoding, long)]);
    }
  });

  it('is never too low where a run is cut, and never above the number of bytes', async () => {
    await assertRuns(
      fc.property(anyText, fc.integer({ min: 16, max: 128 }), (text, windowChars) => {
        const right = exactly(encoding, text);
        const counted = countWithin(encoding, text, Infinity, windowChars);
        expect(counted).toBeGreaterThanOrEqual(right);
        expect(counted).toBeLessThanOrEqual(Buffer.byteLength(text));
      }),
      { seed: SEED + 1, leastRuns: 400 },
    );
  });

  it('is exact across windows for a long text of words, code and blanks', () => {
    const code = 'if (x) {\n\n        return "it\'s";\t// 12345 ---- ####\n    }\r\n\r\n\t\t';
    const text = `${ENGLISH}${code.repeat(200)}${'的一是不了。'.repeat(300)}${'  \n'.repeat(50)}end`;
    expect(countTokens(encoding, text)).toBe(exactly(encoding, text));
    for (const windowChars of [256, 257, 300, 511, 1_000])
      expect(countWithin(encoding, text, Infinity, windowChars)).toBe(exactly(encoding, text));
  });

  it('returns Infinity when the count exceeds its limit', async () => {
    await assertRuns(
      fc.property(anyText, fc.nat({ max: 300 }), (text, limit) => {
        const right = countTokens(encoding, text);
        expect(countWithin(encoding, text, limit)).toBe(right <= limit ? right : Infinity);
      }),
      { seed: SEED + 2, leastRuns: 200 },
    );
  });

  it.each([
    ['a', 9 * MIB],
    [' ', 9 * MIB],
    ['!', 2 * MIB],
    ['0', 2 * MIB],
    ['\ud800', 2 * MIB],
    [' \n', 2 * MIB],
  ])('does not overflow the stack: %j for %i characters', (unit, chars) => {
    const text = unit.repeat(chars / unit.length);
    const counted = countTokens(encoding, text);
    expect(counted).toBeGreaterThan(MIB / 128);
    expect(counted).toBeLessThanOrEqual(Buffer.byteLength(text));
  });

  it('takes time proportional to the text: at most 12 times that of English for any text', () => {
    const english = ENGLISH.repeat(Math.ceil(LONG_CHARS / ENGLISH.length)).slice(0, LONG_CHARS);
    // CPU time, because the machine may do other work.
    const nanosPerByte = (text: string) => {
      const from = process.cpuUsage();
      countTokens(encoding, text);
      const { user, system } = process.cpuUsage(from);
      return ((user + system) * 1_000) / Buffer.byteLength(text);
    };
    for (const slow of CORPUS) {
      const text = longText(slow);
      // The best of several alternating runs.
      let least = Infinity;
      for (let i = 0; i < 5 && least > 12; i++) least = Math.min(least, nanosPerByte(text) / nanosPerByte(english));
      if (least > 12) throw new Error(`${slow.name}: ${least.toFixed(1)} × English`);
    }
  });
});

describe('the pieces of a text', () => {
  it('are at most a window long, and each character is matched at most twice', () => {
    class Watched extends RegExp {
      windows = 0;
      chars = 0;
      private last = '';
      override test(window: string): boolean {
        if (window !== this.last || this.lastIndex === 0) {
          this.windows += 1;
          this.chars += window.length;
        }
        this.last = window;
        return super.test(window);
      }
    }
    const patterns = createRequire(__filename)('gpt-tokenizer/encodingParams/constants') as Record<string, RegExp>;
    const all = Object.values(patterns).filter((value) => value instanceof RegExp);
    expect(all).toHaveLength(3);
    for (const { source, flags } of all)
      for (const slow of CORPUS) {
        const text = longText(slow);
        const pattern = new Watched(source, flags);
        let whole = '';
        let longest = 0;
        forEachPiece(text, pattern, 1_024, (piece) => {
          whole += piece;
          longest = Math.max(longest, piece.length);
          return true;
        });
        expect(whole === text).toBe(true);
        expect(longest).toBeLessThanOrEqual(1_024);
        expect([slow.name, pattern.chars <= 2 * text.length + 2_048]).toEqual([slow.name, true]);
        expect(pattern.windows).toBeLessThanOrEqual((2 * text.length) / 1_024 + 2);
      }
  });
});

describe('the tokenizer', () => {
  it('runs in a worker thread without the modules of the server', async () => {
    const file = join(ROOT, 'apps/gateway/dist/prompt/tokenizer.js');
    const worker = new Worker(
      `const { countTokens } = require(${JSON.stringify(file)});
       const heavy = Object.keys(require.cache).filter((name) => /nestjs|undici|pino/.test(name));
       require('node:worker_threads').parentPort.postMessage([countTokens('o200k_base', 'Hello there'), heavy]);`,
      { eval: true },
    );
    const told = await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject));
    expect(told).toEqual([2, []]);
    await worker.terminate();
  });
});
