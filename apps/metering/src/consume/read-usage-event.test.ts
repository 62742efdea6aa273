import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { usageEvent } from '../sample-events.fixture';
import { validateUsageEvent } from './read-usage-event';

const NOW_MS = Date.parse('2026-11-21T12:00:00.000Z');
const good = () => usageEvent({ endedAt: '2026-11-21T11:59:59.999Z' });

describe('validateUsageEvent', () => {
  it("accepts a gateway's event, and one with further properties", () => {
    expect(validateUsageEvent(good(), NOW_MS)).toBeNull();
    expect(validateUsageEvent({ ...good(), region: 'new' }, NOW_MS)).toBeNull();
    expect(validateUsageEvent({ ...good(), defaultBudgets: { tenantCents: 0, keyCents: 5 } }, NOW_MS)).toBeNull();
  });

  it.each([
    ['not an object', 'req_'],
    ['not an object', null],
    ['not an object', []],
    ['id: not a request id', { ...good(), id: 'req_1' }],
    ['tenantId: not a tenant id', { ...good(), tenantId: good().id }],
    ['keyId: not a key id', { ...good(), keyId: undefined }],
    ['model: not a name', { ...good(), model: 'a\u0000b' }],
    ['model: not a name', { ...good(), model: '\ud800' }],
    ['model: not a name', { ...good(), model: 'm'.repeat(257) }],
    ['kind: unknown', { ...good(), kind: 'image' }],
    ['outcome: unknown', { ...good(), outcome: 'toString' }],
    ['stream: not a boolean', { ...good(), stream: 1 }],
    ['estimated: not a boolean', { ...good(), estimated: 'no' }],
    ['promptTokens: not a token count', { ...good(), promptTokens: -1 }],
    ['completionTokens: not a token count', { ...good(), completionTokens: 1.5 }],
    ['completionTokens: not a token count', { ...good(), completionTokens: 2 ** 31 }],
    ['cachedTokens: more than promptTokens', { ...good(), cachedTokens: 101 }],
    ['reasoningTokens: not a part of completionTokens', { ...good(), reasoningTokens: 51 }],
    ['reasoningTokens: not a part of completionTokens', { ...good(), reasoningTokens: '5' }],
    ['price: not an object', { ...good(), price: '0.15' }],
    ['price.version: not a name', { ...good(), price: { ...good().price, version: '' } }],
    ['price.outputFemtos: not a price', { ...good(), price: { ...good().price, outputFemtos: '-1' } }],
    ['price.requestNanos: not a price', { ...good(), price: { ...good().price, requestNanos: '1000000000000001' } }],
    ['costNanos: not an amount', { ...good(), costNanos: 5 }],
    ['costNanos: not an amount', { ...good(), costNanos: '9223372036854775808' }],
    ['overrunNanos: not an amount', { ...good(), overrunNanos: '0x1' }],
    ['defaultBudgets: not an object', { ...good(), defaultBudgets: null }],
    ['defaultBudgets.keyCents: not an amount', { ...good(), defaultBudgets: { keyCents: -1 } }],
    ['defaultBudgets.tenantCents: not an amount', { ...good(), defaultBudgets: { tenantCents: '5' } }],
    ['startedAt: not a time', { ...good(), startedAt: '2026-02-30T00:00:00.000Z' }],
    ['endedAt: not a time', { ...good(), endedAt: '2026-11-21' }],
    ['endedAt: not a time', { ...good(), endedAt: '2026-13-21T00:00:00.000Z' }],
    ['endedAt: not a time', { ...good(), endedAt: '2026-11-00T00:00:00.000Z' }],
    ['endedAt: not a time', { ...good(), endedAt: '2026-11-21T00:60:00.000Z' }],
    ['endedAt: not a time', { ...good(), endedAt: '2026-11-21T24:00:00.001Z' }],
    ['endedAt: not a time', { ...good(), endedAt: '2026-11-21T24:00:00.000Z' }],
    ['endedAt: in the future', { ...good(), endedAt: '2026-11-22T12:00:00.001Z' }],
  ])('says "%s"', (reason, value) => {
    expect(validateUsageEvent(value, NOW_MS)).toBe(reason);
  });

  it('answers for any value, and never throws', async () => {
    const mutant = fc
      .tuple(fc.constantFrom(...Object.keys(good())), fc.anything())
      .map(([name, value]) => ({ ...good(), [name]: value }));
    await assertRuns(
      fc.property(fc.oneof(fc.anything(), mutant), (value) => {
        const reason = validateUsageEvent(value, NOW_MS);
        expect(reason === null || reason.length > 0).toBe(true);
      }),
      { seed: 3, leastRuns: 2_000 },
    );
  });
});
