import fc from 'fast-check';

/** Idempotency-Keys of a run. */
export const CLAIMS = 7;

/** Small and large amounts: those that doubles would round, and those that the clamps divide. */
const nanos = fc.oneof(fc.bigInt(0n, 10_000n), fc.bigInt(0n, 10n ** 13n), fc.bigInt(0n, 4n * 10n ** 18n));
const femtos = fc.oneof(fc.constant(0n), fc.bigInt(0n, 10n ** 9n), fc.bigInt(0n, 10n ** 15n));
const tokens = fc.oneof(fc.nat(50), fc.nat(100_000), fc.nat(1_000_000_000));
const limits = fc.record({
  requestsPerMinute: fc.constantFrom(3, 7, 997, 1_000_000),
  tokensPerMinute: fc.constantFrom(97, 100_003, 10 ** 9, 10 ** 12),
  concurrency: fc.constantFrom(2, 100),
});
const budget = fc.option(nanos, { freq: 2 });
const shape = fc
  .record({
    keyLimits: limits,
    tenantLimits: limits,
    keyBudgetNanos: budget,
    tenantBudgetNanos: budget,
    promptTokens: tokens,
    promptFemtos: fc.oneof(fc.constant(0n), fc.bigInt(0n, 10n ** 10n), fc.bigInt(0n, 10n ** 24n)),
    outputFemtosPerToken: femtos,
    boundIsExact: fc.constantFrom(true, true, true, false),
    wantOutputTokens: tokens,
    least: tokens,
  })
  .map(({ least, ...rest }) => {
    const want = rest.wantOutputTokens;
    return { ...rest, minOutputTokens: want === 0 ? 0 : Math.max(1, Math.min(want, least)) };
  });

/** One of a few Idempotency-Keys, so that most are claimed again. */
const claim = fc.option(fc.nat(CLAIMS - 1), { freq: 2 });
const pick = fc.nat(30);
const some = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 5 });
/** The operations that both stores get. */
export const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      requests: some(fc.record({ key: fc.nat(1), shape, claim })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('extend' as const),
      holds: some(fc.record({ pick, want: nanos, min: nanos })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('progress' as const),
      holds: some(fc.record({ pick, cost: fc.option(nanos), tokens })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      holds: some(fc.record({ pick, part: fc.nat(1_001), tokens, answer: fc.option(fc.nat(120)) })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('void' as const), holds: some(fc.record({ pick })) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('updates' as const),
      balance: nanos,
      below: fc.boolean(),
      version: fc.nat(60),
      releases: some(pick),
      budgets: fc.array(
        fc.record({
          key: fc.option(fc.nat(1)),
          version: fc.nat(20).map((version) => BigInt(version + 1)),
          nanos: fc.oneof(nanos, fc.constantFrom('none' as const, 'default' as const)),
        }),
        { maxLength: 3 },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('withdraw' as const),
      version: fc.nat(60).map((version) => BigInt(version)),
      nanos: nanos.map((amount) => amount + 1n),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('repair' as const),
      balance: nanos,
      version: fc.nat(60),
      /** What the tenant and its keys spent, in the current month by the clock or in the one before. */
      spent: fc.option(fc.tuple(nanos, nanos, nanos)),
      releases: fc.array(pick, { maxLength: 5 }),
      isThisMonth: fc.boolean(),
      budgets: fc.uniqueArray(
        fc.record({
          key: fc.option(fc.nat(1)),
          version: fc.nat(20).map((version) => BigInt(version + 1)),
          nanos: fc.oneof(nanos, fc.constantFrom('none' as const, 'default' as const)),
        }),
        { maxLength: 3, selector: ({ key }) => key },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sweep' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.oneof(fc.nat(40), fc.nat(15_000), fc.constantFrom(2_678_400_000, -2_678_400_000, -15_000, -100_000)),
    }),
  },
);
export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;
