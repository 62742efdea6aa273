import { costNanos, type PriceStamp, type UsageEvent } from '@tollgate/contracts';
import type { Prices } from './prices';

const NUMBERS = [
  'inputFemtos',
  'cachedInputFemtos',
  'outputFemtos',
  'requestNanos',
] as const satisfies readonly (keyof PriceStamp)[];

/** The charge for a request, and the excess beyond its hold that is not charged, in nanos. */
export interface Rating {
  chargeNanos: bigint;
  overrunNanos: bigint;
}

/** The reason why an event is not charged. `price`: its price is unknown (so far). */
export interface Unrated {
  reason: string;
  wrong: 'price' | 'cost';
}

/**
 * Rates a valid event by its stamped price, and trusts none of its amounts. The price must be one that the
 * configuration once gave this model, in every number. The settled cost and the excess beyond the hold must together be
 * the cost of the tokens at that price. There is no tolerance, to the nano: the exact sum over the tokens is rounded up
 * once (`costNanos` of the contracts), by the event's author and here alike, and the hold caps the rounded sum. A lower
 * cost is refused too, because unbilled usage is also an error.
 */
export function rate(event: UsageEvent, prices: Prices): Rating | Unrated {
  const price = prices.find(event);
  if (price === undefined) return { reason: 'price.version: never in force for this model', wrong: 'price' };
  const differing = NUMBERS.find((name) => event.price[name] !== price[name]);
  if (differing !== undefined) return { reason: `price.${differing}: not that of its version`, wrong: 'cost' };
  const chargeNanos = BigInt(event.costNanos);
  const overrunNanos = BigInt(event.overrunNanos);
  const rated = costNanos(event, price);
  if (chargeNanos + overrunNanos !== rated) {
    return { reason: `costNanos: with overrunNanos not the ${rated} that its tokens cost`, wrong: 'cost' };
  }
  return { chargeNanos, overrunNanos };
}
