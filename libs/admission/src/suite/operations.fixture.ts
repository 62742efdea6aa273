import fc from 'fast-check';
import type { AdmitRequest, Budget } from '../admission-store';
import { TOKEN_NANOS } from './store.fixture';

/**
 * The operations of the property tests, with small numbers, so that limits and ends are reached often. `pick` selects
 * one of the holds so far.
 */
export type Operation =
  | { kind: 'admit'; requests: { tenant: number; key: number; repeat: number | null; shape: Partial<AdmitRequest> }[] }
  | { kind: 'look'; requests: { tenant: number; key: number; shape: Partial<AdmitRequest> }[] }
  | { kind: 'extend'; holds: { pick: number; want: number; min: number }[] }
  | { kind: 'progress'; holds: { pick: number; completionTokens: number | null }[] }
  | { kind: 'settle'; holds: { pick: number; tokens: number }[] }
  | { kind: 'void'; holds: { pick: number }[] }
  | { kind: 'topUp'; tenant: number; tokens: number }
  | { kind: 'post'; tenant: number; count: number }
  | { kind: 'budget'; tenant: number; key: number | null; nanos: Budget['nanos'] }
  | { kind: 'deliver'; picks: number[] }
  | { kind: 'sweep' }
  | { kind: 'wait'; ms: number };

const limits = fc.record({
  requestsPerMinute: fc.constantFrom(7, 60, 10_000),
  tokensPerMinute: fc.constantFrom(97, 1_000, 1_000_000),
  concurrency: fc.constantFrom(3, 100),
});
const budget = fc.oneof(
  { weight: 3, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.bigInt(0n, 150n * TOKEN_NANOS) },
);
const shape = fc
  .record({
    keyLimits: limits,
    tenantLimits: limits,
    keyBudgetNanos: budget,
    tenantBudgetNanos: budget,
    promptTokens: fc.nat(20),
    promptFemtos: fc.bigInt(0n, 5n * TOKEN_NANOS * 1_000_000n),
    outputFemtosPerToken: fc.constantFrom(0n, 1n, 333_333_333n, TOKEN_NANOS * 1_000_000n),
    boundIsExact: fc.constantFrom(true, true, true, false),
    output: fc.tuple(fc.nat(30), fc.nat(30)),
  })
  .map(({ output: [want, least], ...rest }) => ({
    ...rest,
    wantOutputTokens: want,
    minOutputTokens: want === 0 ? 0 : Math.max(1, Math.min(want, least)),
  }));
const pick = fc.nat(40);
const some = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 4 });
const tenant = fc.nat(1);
export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      requests: some(
        fc.record({
          tenant,
          key: fc.nat(1),
          repeat: fc.oneof({ weight: 8, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: pick }),
          shape,
        }),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('look' as const),
      requests: some(fc.record({ tenant, key: fc.nat(1), shape })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('extend' as const),
      holds: some(fc.record({ pick, want: fc.nat(20), min: fc.nat(20) })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('progress' as const),
      holds: some(fc.record({ pick, completionTokens: fc.option(fc.nat(40)) })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      holds: some(fc.record({ pick, tokens: fc.nat(30) })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('void' as const), holds: some(fc.record({ pick })) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('topUp' as const), tenant, tokens: fc.nat(400) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('post' as const), tenant, count: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('budget' as const),
      tenant,
      key: fc.option(fc.nat(1)),
      nanos: fc.oneof(fc.bigInt(0n, 150n * TOKEN_NANOS), fc.constantFrom('none' as const, 'default' as const)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('deliver' as const), picks: some(pick) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('sweep' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      // The clock may also go back, for good or until it is right again.
      ms: fc.oneof(fc.nat(30), fc.nat(15_000), fc.constantFrom(2_678_400_000, -2_678_400_000, -15_000, -100_000)),
    }),
  },
);
