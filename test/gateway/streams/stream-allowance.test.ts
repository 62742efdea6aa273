import type { AdmissionClient } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import fs from 'node:fs';
import { countTokens } from '../../../apps/gateway/src/prompt/tokenizer';
import { toStringBody } from '../../../apps/gateway/src/upstream/wire/json-text';
import { DeliveredText } from '../../../apps/gateway/src/upstream/count/delivered-text';
import { type Hold, STREAM_SLICE_TOKENS } from '../../../apps/gateway/src/admit/admit';
import type { HeldPrices } from '../../../apps/gateway/src/admit/held-prices';
import { StreamAllowance } from '../../../apps/gateway/src/admit/stream-allowance';

const SEED = 20_261_123;
const MOST_CHUNK_TOKENS = 16;
const NANO_A_TOKEN = {
  outputFemtosPerToken: 1_000_000n,
  promptFemtosPerToken: 0n,
  requestFemtos: 0n,
};
/** Prices in nanos a token. */
const nanos = (prompt: bigint, output: bigint) => ({
  promptFemtosPerToken: prompt * 1_000_000n,
  outputFemtosPerToken: output * 1_000_000n,
  requestFemtos: 0n,
});
/** A hold of a prompt with this bound, and with this one after a count. */
const held = (
  of: Pick<Hold, 'holdNanos' | 'outputTokens' | 'maxTokensPerChoice'>,
  prices: HeldPrices = NANO_A_TOKEN,
  bound = 0,
  counted = bound,
) => {
  const prompt = { upperBound: bound, counted: () => ({ upperBound: counted }) };
  return { id: 'a', tenantId: 't', prompt, prices, ...of } as unknown as Hold;
};
const count = (text: string) => countTokens('o200k_base', text);
const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 80 });
const chinese = fc.string({ unit: fc.constantFrom(...'的一是不了在人有我他这，。龘'), minLength: 1, maxLength: 40 });
const base64 = fc.base64String({ minLength: 4, maxLength: 120 });
const word = fc.constantFrom('word', ' the', ' a b', '\n', '\n\n  x', ' don’t', '\t', ' ', '  ');
const words = fc.array(word, { minLength: 1, maxLength: 12 });
const text = fc.oneof(
  digits,
  chinese,
  base64,
  words.map((parts) => parts.join('')),
  fc.string({ minLength: 1 }),
);

describe('the allowance of a stream', () => {
  it('ends a backend exactly at the requested tokens, and raises the hold to no more', async () => {
    const wanted: bigint[] = [];
    const client = {
      extend: ({ wantNanos }: { wantNanos: bigint }) => {
        wanted.push(wantNanos);
        return Promise.resolve({ kind: 'extended', holdNanos: 40n + wantNanos });
      },
    } as unknown as AdmissionClient;
    const hold = held({ holdNanos: 40n, outputTokens: 50, maxTokensPerChoice: 50 });
    const allowance = new StreamAllowance(client, hold, 1);
    let tokens = 0;
    let counts = 0;
    const take = () =>
      allowance.take(20, () => {
        counts += 1;
        return tokens + 5;
      });
    for (; tokens < 50; tokens += 5) expect(take()).toBe('granted');
    expect(take()).toBe('capped');
    expect(allowance.limit).toBe(50);
    // Counts only bytes until they might exceed the allowance.
    expect(counts).toBeLessThan(11);
    expect(await allowance.raiseTo(5_000n)).toBe(50n);
    expect(wanted).toEqual([10n]);
  });

  it('of a stream that a fallback serves is covered, extended and raised at the price of the fallback', async () => {
    const wanted: bigint[] = [];
    let holdNanos = 20n * 100n + 30n * BigInt(STREAM_SLICE_TOKENS);
    const client = {
      extend: ({ wantNanos }: { wantNanos: bigint }) => {
        wanted.push(wantNanos);
        return Promise.resolve({ kind: 'extended', holdNanos: (holdNanos += wantNanos) });
      },
    } as unknown as AdmissionClient;
    const [highest, served] = [nanos(20n, 30n), nanos(10n, 15n)];
    const output = { outputTokens: STREAM_SLICE_TOKENS, maxTokensPerChoice: 4 * STREAM_SLICE_TOKENS };
    const allowance = new StreamAllowance(client, held({ holdNanos, ...output }, highest, 100), 1);
    expect(allowance.limit).toBe(STREAM_SLICE_TOKENS);
    allowance.priceAs(served);
    // Half the price: twice the output, and what the prompt costs less.
    const covered = 2 * STREAM_SLICE_TOKENS + Math.floor(1_000 / 15);
    expect(allowance.limit).toBe(covered);
    expect(allowance.take(covered, () => covered)).toBe('granted');
    await new Promise(setImmediate);
    expect(wanted).toEqual([15n * BigInt(STREAM_SLICE_TOKENS)]);
    expect(allowance.limit).toBe(covered + STREAM_SLICE_TOKENS);
    expect(allowance.extensions).toBe(1);
    // Never beyond the cost of the output asked for, at the price of the fallback.
    const whole = 1_000n + 15n * BigInt(4 * STREAM_SLICE_TOKENS);
    expect(await allowance.raiseTo(whole + 1_000n)).toBe(whole);
  });

  it('ends a fallback at the tokens that it was asked for, over all choices, and raises the hold to that', async () => {
    const wanted: bigint[] = [];
    const client = {
      extend: ({ wantNanos }: { wantNanos: bigint }) => {
        wanted.push(wantNanos);
        return Promise.resolve({ kind: 'extended', holdNanos: 150n + wantNanos });
      },
    } as unknown as AdmissionClient;
    const hold = held({ holdNanos: 150n, outputTokens: 150, maxTokensPerChoice: 4_096 });
    const allowance = new StreamAllowance(client, hold, 2);
    // A fallback that fails, and the next one.
    allowance.capAt(20);
    expect([allowance.limit, allowance.take(41, () => 41)]).toEqual([40, 'capped']);
    allowance.capAt(100);
    expect(allowance.limit).toBe(150);
    allowance.capAt(60);
    expect(allowance.take(120, () => 120)).toBe('granted');
    expect(allowance.take(1, () => 121)).toBe('capped');
    expect(allowance.limit).toBe(120);
    expect(await allowance.raiseTo(5_000n)).toBe(150n);
    expect(wanted).toEqual([]);
  });

  it('keeps the count of the prompt if the price of a fallback comes after the last extension', async () => {
    const client = { extend: () => Promise.resolve({ kind: 'refused' }) } as unknown as AdmissionClient;
    const credit = { holdNanos: 2_000n, outputTokens: 100, maxTokensPerChoice: 4_096 };
    const allowance = new StreamAllowance(client, held(credit, nanos(10n, 10n), 100, 40), 1);
    expect(allowance.take(100, () => 100)).toBe('granted');
    await new Promise(setImmediate);
    expect(allowance.limit).toBe(160);
    allowance.priceAs(nanos(5n, 5n));
    expect(allowance.limit).toBe(360);
  });

  it('never grants more tokens than are held, for any text in any chunks', async () => {
    await assertRuns(
      fc.asyncProperty(
        fc.array(text, { minLength: 20, maxLength: 60 }),
        fc.integer({ min: 1, max: 600 }),
        fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 4 }),
        async (chunks, first, grants) => {
          const hold = held({ holdNanos: BigInt(first), outputTokens: first, maxTokensPerChoice: 100_000 });
          let granted = first;
          // One token costs one nano.
          const extend = () => {
            const more = grants.shift() ?? 0;
            granted += more;
            return Promise.resolve(more === 0 ? { kind: 'refused' } : { kind: 'extended', holdNanos: BigInt(granted) });
          };
          const allowance = new StreamAllowance({ extend } as unknown as AdmissionClient, hold, 1);
          const delivered = new DeliveredText(count);
          let exact = '';
          for (const chunk of chunks) {
            const piece = { choice: 0, text: toStringBody(chunk), least: 1 };
            const take = () => allowance.take(piece.text.length, () => delivered.tokensWith([piece]));
            let taken = take();
            while (taken === 'wait') {
              await new Promise(setImmediate);
              taken = take();
            }
            if (taken !== 'granted') break;
            delivered.add(piece);
            exact += chunk;
            expect(count(exact)).toBeLessThanOrEqual(granted);
          }
          expect(delivered.tokens()).toBe(count(exact));
        },
      ),
      { seed: SEED, leastRuns: 50, mostRuns: 150, timeBoxMs: 4_000 },
    );
  });

  it.each([
    ['an outage, which is not logged as a fault', new UnavailableError('the store is unavailable'), false],
    ['a bug, which is logged', new TypeError('a bug'), true],
  ])('lets a stream deliver the held tokens after %s', async (_, error, isLogged) => {
    let written = '';
    const spy = jest.spyOn(fs, 'writeSync').mockImplementation((_fd: number, text: string) => {
      written += text;
      return Buffer.byteLength(text);
    });
    const client = { extend: () => Promise.reject(error) } as unknown as AdmissionClient;
    const hold = held({ holdNanos: 50n, outputTokens: 50, maxTokensPerChoice: 100 });
    const allowance = new StreamAllowance(client, hold, 1);
    try {
      expect(allowance.take(50, () => 50)).toBe('granted');
      await new Promise(setImmediate);
      expect(allowance.take(1, () => 51)).toBe('wait');
      await new Promise(setImmediate);
      expect(allowance.take(1, () => 51)).toBe('ended');
    } finally {
      spy.mockRestore();
    }
    expect(written.includes('a hold was not extended')).toBe(isLogged);
  });

  it('asks for more with at least a quarter of the slice left, so that a fast answer delays no stream', async () => {
    let [asked, counted, bytes] = [0, 0, 0];
    await assertRuns(
      fc.asyncProperty(
        fc.array(text, { minLength: 40, maxLength: 80 }),
        fc.integer({ min: 0, max: STREAM_SLICE_TOKENS / 4 - MOST_CHUNK_TOKENS - 1 }),
        async (texts, answeredAfterTokens) => {
          const credit = { holdNanos: BigInt(STREAM_SLICE_TOKENS), outputTokens: STREAM_SLICE_TOKENS };
          const hold = held({ ...credit, maxTokensPerChoice: 1_000_000 });
          let covered = STREAM_SLICE_TOKENS;
          let delivered = 0;
          let askedAt = 0;
          let answer: (() => void) | null = null;
          const extend = ({ wantNanos }: { wantNanos: bigint }) => {
            asked++;
            askedAt = delivered;
            expect(covered - delivered).toBeGreaterThanOrEqual(STREAM_SLICE_TOKENS / 4);
            return new Promise((resolve) => {
              answer = () => {
                covered += Number(wantNanos);
                resolve({ kind: 'extended', holdNanos: BigInt(covered) });
              };
            });
          };
          const client = { extend } as unknown as AdmissionClient;
          const allowance = new StreamAllowance(client, hold, 1);
          const relayed = new DeliveredText(count);
          // Long enough for several slices with any text.
          for (const chunk of [...Array.from({ length: 4 }, () => texts).flat()].flatMap(inParts)) {
            const piece = { choice: 0, text: toStringBody(chunk), least: 1 };
            const counting = () => {
              counted++;
              return relayed.tokensWith([piece]);
            };
            expect(allowance.take(piece.text.length, counting)).toBe('granted');
            relayed.add(piece);
            bytes += piece.text.length;
            delivered = relayed.tokens();
            if (!answer) continue;
            if (delivered - askedAt < answeredAfterTokens) continue;
            (answer as () => void)();
            answer = null;
            await new Promise(setImmediate);
          }
        },
      ),
      { seed: SEED, leastRuns: 20, mostRuns: 60, timeBoxMs: 6_000 },
    );
    expect(asked).toBeGreaterThan(10);
    // Counted far less often than once per chunk.
    expect(bytes / counted).toBeGreaterThan(60);
  });
});

/** Cuts a text as a backend sends it. No chunk has more than MOST_CHUNK_TOKENS bytes, so no more tokens. */
function inParts(chunk: string): string[] {
  const parts: string[] = [];
  let part = '';
  for (const letter of chunk) {
    if (Buffer.byteLength(part + letter) > MOST_CHUNK_TOKENS) {
      parts.push(part);
      part = '';
    }
    part += letter;
  }
  return [...parts, part];
}
