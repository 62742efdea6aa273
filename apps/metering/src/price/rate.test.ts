import { usageEvent } from '../sample-events.suite';
import { rate } from './rate';

describe('rate', () => {
  it('charges what the tokens cost at the stamped prices', () => {
    const event = usageEvent({ promptTokens: 10, cachedTokens: 4, completionTokens: 5 });
    expect(rate(event)).toEqual({
      chargeNanos: 6n * 150n + 4n * 75n + 5n * 600n,
      overrunNanos: 0n,
      disagreementNanos: null,
    });
  });

  it('charges no more than the hold when the backend reported more: the rest is the operator’s loss, and no disagreement', () => {
    const full = BigInt(usageEvent().costNanos);
    const capped = usageEvent({ costNanos: String(full - 100n), overrunNanos: '100' });
    expect(rate(capped)).toEqual({ chargeNanos: full - 100n, overrunNanos: 100n, disagreementNanos: null });
  });

  it('charges what was settled, above or below the rated cost, and says that they disagree', () => {
    const full = BigInt(usageEvent().costNanos);
    for (const settled of [full - 1n, full + 1n, 0n]) {
      expect(rate(usageEvent({ costNanos: String(settled) }))).toEqual({
        chargeNanos: settled,
        overrunNanos: 0n,
        disagreementNanos: full,
      });
    }
  });
});
