import { costNanos, newId, type PriceStamp, type UsageDraft } from '@tollgate/contracts';
import { stampPrice } from '@tollgate/runtime';
import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { toUsageEvent } from '../../../apps/gateway/src/settle/usage-event';
import { validateUsageEvent } from '../../../apps/metering/src/consume/read-usage-event';
import { rate } from '../../../apps/metering/src/price/rate';

const decimal = fc
  .tuple(fc.nat(999_999), fc.integer({ min: 0, max: 999_999_999 }))
  .map(([whole, nanos]) => `${whole}.${String(nanos).padStart(9, '0')}`);
const price = fc.oneof(
  fc.record({ input: decimal, cachedInput: decimal, output: decimal, request: decimal }),
  // Fractions of a nano, and zero.
  fc.constantFrom(
    { input: '0.000000001', cachedInput: '0.000000001', output: '0.000000001', request: '0' },
    { input: '0', output: '0', request: '0' },
  ),
);
const ended = fc.record({
  price,
  kind: fc.constantFrom('chat' as const, 'completion' as const, 'embedding' as const),
  tokens: fc
    .record({
      promptTokens: fc.nat(2 ** 31 - 1),
      cached: fc.double({ min: 0, max: 1, noNaN: true }),
      completionTokens: fc.oneof(fc.nat(9), fc.nat(2 ** 31 - 1)),
    })
    .map(({ promptTokens, cached, completionTokens }) => ({
      promptTokens,
      cachedTokens: Math.floor(promptTokens * cached),
      completionTokens,
    })),
  /** The hold in thousandths of the cost. */
  heldPerMille: fc.oneof(fc.constant(1_000n), fc.bigInt({ min: 0n, max: 2_000n })),
  estimated: fc.boolean(),
  outcome: fc.constantFrom(
    'complete' as const,
    'client_closed' as const,
    'upstream_error' as const,
    'credit_ended' as const,
    'expired' as const,
  ),
});

it('metering rates every event of a gateway at the cost in it, for any hold', async () => {
  await assertRuns(
    fc.property(ended, ({ price, kind, tokens, heldPerMille, estimated, outcome }) => {
      const stamp: PriceStamp = stampPrice(price, kind === 'embedding' ? 'embedding' : 'chat');
      const at = new Date();
      const draft: UsageDraft = {
        id: newId('req'),
        tenantId: newId('ten'),
        keyId: newId('key'),
        model: 'm',
        kind,
        stream: true,
        price: stamp,
        startedAt: at.toISOString(),
      };
      const full = costNanos(tokens, stamp);
      const holdNanos = (full * heldPerMille) / 1_000n;
      const delivered = { tokens, cost: full, estimated, outcome };
      const event = toUsageEvent(draft, { ...delivered, holdNanos, endedMs: at.getTime() });
      expect(validateUsageEvent(event)).toBeNull();
      const chargeNanos = holdNanos < full ? holdNanos : full;
      expect(rate(event, { find: () => stamp, lookAgain: async () => false })).toEqual({
        chargeNanos,
        overrunNanos: full - chargeNanos,
      });
    }),
    { seed: 12, leastRuns: 2_000 },
  );
});
