import type { UsageEvent } from '@tollgate/contracts';
import { ANY_PRICE, PRICE, usageEvent } from '../sample-events.fixture';
import { rate } from './rate';

const full = BigInt(usageEvent().costNanos);
const refused = (changes: Partial<UsageEvent>) => rate(usageEvent(changes), ANY_PRICE);
const COST = { reason: `costNanos: with overrunNanos not the ${full} that its tokens cost`, wrong: 'cost' };

describe('rate', () => {
  it('charges the cost of the tokens at the stamped prices', () => {
    const event = usageEvent({ promptTokens: 10, cachedTokens: 4, completionTokens: 5 });
    expect(rate(event, ANY_PRICE)).toEqual({ chargeNanos: 6n * 150n + 4n * 75n + 5n * 600n, overrunNanos: 0n });
  });

  it('rounds up once, to the nano, over the cost of all tokens', () => {
    // 0.4 + 0.4 + 0.4 nanos.
    const price = { ...PRICE, inputFemtos: '400000', cachedInputFemtos: '400000', outputFemtos: '400000' };
    const event = usageEvent({ price, promptTokens: 2, cachedTokens: 1, completionTokens: 1, costNanos: '2' });
    expect(rate(event, ANY_PRICE)).toEqual({ chargeNanos: 2n, overrunNanos: 0n });
    expect(rate({ ...event, costNanos: '3' }, ANY_PRICE)).toMatchObject({ wrong: 'cost' });
    expect(rate({ ...event, costNanos: '1' }, ANY_PRICE)).toMatchObject({ wrong: 'cost' });
  });

  it('charges at most the hold when the backend reported more, and the excess is the operator’s loss', () => {
    const capped = usageEvent({ costNanos: String(full - 100n), overrunNanos: '100' });
    expect(rate(capped, ANY_PRICE)).toEqual({ chargeNanos: full - 100n, overrunNanos: 100n });
  });

  it.each([
    ['the largest cost that a column holds', { costNanos: String(2n ** 63n - 1n) }],
    ['a hundred times the price', { costNanos: String(full * 100n) }],
    ['a nano too much', { costNanos: String(full + 1n) }],
    ['a nano too little', { costNanos: String(full - 1n) }],
    ['nothing', { costNanos: '0' }],
    ['an overrun of zero', { overrunNanos: '1' }],
  ])('refuses %s', (_what, changes) => {
    expect(refused(changes)).toEqual(COST);
  });

  it('refuses a version that was never in force, and numbers that are not those of their version', () => {
    const event = usageEvent();
    const prices = (price: typeof PRICE | undefined) => ({ find: () => price, lookAgain: async () => false });
    expect(rate(event, prices(undefined))).toEqual({
      reason: 'price.version: never in force for this model',
      wrong: 'price',
    });
    for (const name of ['inputFemtos', 'cachedInputFemtos', 'outputFemtos', 'requestNanos'] as const) {
      // Its own cost agrees with its own numbers.
      const forged = usageEvent({ price: { ...PRICE, [name]: '15000000000' } });
      expect(rate(forged, prices(PRICE))).toEqual({ reason: `price.${name}: not that of its version`, wrong: 'cost' });
    }
  });
});
