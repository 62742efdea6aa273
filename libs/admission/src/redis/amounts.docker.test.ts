import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ceilDiv } from '@tollgate/contracts';
import { functionLibrary, RedisLink } from '@tollgate/redis';
import { assertRuns, useRedis } from '@tollgate/testing';
import fc from 'fast-check';
import { amount } from './json-arguments';

const LEAST_RUNS = 20;
const MOST_RUNS = 100_000;
const TIME_BOX_MS = 4_000;
const CASES_PER_CALL = 200;

/** Each function under test takes JSON values and returns text. */
const REGISTER = `
  local function calculate(keys, args)
    local functions = {
      add = add, sub = sub, mul = mul, least = least, most = most,
      ceil_million = ceil_million, times = times, bucket_us = bucket_us,
      less = function(a, b) return less(a, b) and 1 or 0 end,
      iso_time = iso_time,
      month_of = month_of,
    }
    local out = {}
    for i, case in ipairs(cjson.decode(args[1])) do
      out[i] = text(functions[case[1]](case[2], case[3], case[4]))
    end
    return out
  end
  redis.register_function(LIBRARY .. '_calculate', calculate)`;

const redis = useRedis();
let link: RedisLink;
beforeAll(async () => {
  const code = ['01_amounts', '02_clock', '03_state'].map((name) =>
    readFileSync(join(__dirname, 'lua', `${name}.lua`), 'utf8'),
  );
  const library = functionLibrary('tollgate_test_amounts', [...code, REGISTER].join('\n'));
  link = new RedisLink({ url: redis.url, name: 'test', library });
  await link.start();
});
afterAll(() => link.close());

type Case = [name: string, ...args: (bigint | number)[]];

async function calculate(cases: Case[]): Promise<string[]> {
  const json = JSON.stringify(
    cases.map(([name, ...args]) => [name, ...args.map((arg) => (typeof arg === 'bigint' ? amount(arg) : arg))]),
  );
  return (await link.one({ function: 'calculate', keys: ['{a}'], args: [json] })) as string[];
}

const min = (a: bigint, b: bigint) => (a < b ? a : b);
const max = (a: bigint, b: bigint) => (a > b ? a : b);

/** Numbers of every size, and around the bounds where the representation changes. */
const signed = fc.oneof(
  fc.bigInt(-(2n ** 120n), 2n ** 120n),
  fc.bigInt(-1_000n, 1_000n),
  fc
    .tuple(
      fc.constantFrom(2n ** 53n, 10n ** 7n, 10n ** 14n, 10n ** 15n, 10n ** 16n, 4n * 10n ** 18n),
      fc.bigInt(-3n, 3n),
      fc.boolean(),
    )
    .map(([bound, off, negative]) => (negative ? -(bound + off) : bound + off)),
);
const positive = signed.map((value) => (value < 0n ? -value : value));

describe('the arithmetic of the functions', () => {
  it('is exact for integers of any size', async () => {
    const one = fc.oneof(
      fc.tuple(fc.constantFrom('add', 'sub', 'mul', 'least', 'most', 'less'), signed, signed),
      fc.tuple(fc.constant('ceil_million'), positive, fc.constant(0n)),
    );
    const expected = ([name, a, b]: [string, bigint, bigint]): bigint =>
      ({
        add: a + b,
        sub: a - b,
        mul: a * b,
        least: min(a, b),
        most: max(a, b),
        less: a < b ? 1n : 0n,
        ceil_million: ceilDiv(max(a, 0n), 1_000_000n),
      })[name]!;
    await assertRuns(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: CASES_PER_CALL }), async (cases) => {
        expect(await calculate(cases)).toEqual(cases.map((one) => String(expected(one))));
      }),
      box(),
    );
  });

  it('counts how often a price fits into an amount, however large both are', async () => {
    const one = fc.tuple(
      positive,
      fc.oneof(positive, fc.bigInt(0n, 10n ** 16n)),
      fc.integer({ min: 0, max: 100_000_000_000 }),
    );
    const expected = (left: bigint, price: bigint, want: number) =>
      price === 0n ? BigInt(want) : min(left / price, BigInt(want));
    await assertRuns(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: CASES_PER_CALL }), async (cases) => {
        const answers = await calculate(cases.map((one): Case => ['times', ...one]));
        expect(answers).toEqual(cases.map((one) => String(expected(...one))));
      }),
      box(),
    );
  });

  it('moves buckets by exact microseconds, for limits up to 10^12', async () => {
    const one = fc.tuple(fc.integer({ min: 0, max: 200_000_000_000 }), fc.integer({ min: 1, max: 1_000_000_000_000 }));
    await assertRuns(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: CASES_PER_CALL }), async (cases) => {
        const answers = await calculate(cases.map((one): Case => ['bucket_us', ...one]));
        expect(answers).toEqual(
          cases.map(([amount, limit]) => String((min(BigInt(amount), BigInt(limit)) * 60_000_000n) / BigInt(limit))),
        );
      }),
      box(),
    );
  });

  it('has the calendar', async () => {
    const instant = fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) });
    await assertRuns(
      fc.asyncProperty(fc.array(instant, { minLength: 1, maxLength: CASES_PER_CALL }), async (instants) => {
        expect(await calculate(instants.map((ms): Case => ['iso_time', ms]))).toEqual(
          instants.map((ms) => new Date(ms).toISOString()),
        );
        expect(await calculate(instants.map((ms): Case => ['month_of', ms * 1_000]))).toEqual(
          instants.map((ms) => String(new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth())),
        );
      }),
      box(),
    );
  });
});

function box() {
  return {
    leastRuns: LEAST_RUNS,
    mostRuns: MOST_RUNS,
    timeBoxMs: TIME_BOX_MS / 4,
  };
}
