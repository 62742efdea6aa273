import { costNanos, type PriceStamp, type UsageEvent } from '@tollgate/contracts';
import type { Prices } from './prices';

const NUMBERS = [
  'inputFemtos',
  'cachedInputFemtos',
  'outputFemtos',
  'requestNanos',
] as const satisfies readonly (keyof PriceStamp)[];

/** What a request is charged, and what was served beyond its hold and is not, in nanos. */
export interface Rating {
  chargeNanos: bigint;
  overrunNanos: bigint;
}

/** Why an event is not charged. `price`: its price is not known (yet). */
export interface Unrated {
  reason: string;
  wrong: 'price' | 'cost';
}

/**
 * Rates a valid event by the price that it says, and takes nothing of the money on trust: its price must be one that
 * the configuration ever gave this model, to the number, and what was settled and what was beyond the hold must be
 * together what its tokens cost at it. To the nano, there is no tolerance: the exact sum over the tokens is rounded up
 * once (`costNanos` of the contracts), by whoever makes the event as by us, and the hold caps the rounded sum. A cost
 * below it is refused too: usage that is given away is an error as well.
 */
export function rate(event: UsageEvent, prices: Prices): Rating | Unrated {
  const price = prices.find(event);
  if (price === undefined) return { reason: 'price.version: never in force for this model', wrong: 'price' };
  const wrong = NUMBERS.find((name) => event.price[name] !== price[name]);
  if (wrong !== undefined) return { reason: `price.${wrong}: not that of its version`, wrong: 'cost' };
  const chargeNanos = BigInt(event.costNanos);
  const overrunNanos = BigInt(event.overrunNanos);
  const rated = costNanos(event, price);
  if (chargeNanos + overrunNanos !== rated) {
    return { reason: `costNanos: with overrunNanos not the ${rated} that its tokens cost`, wrong: 'cost' };
  }
  return { chargeNanos, overrunNanos };
}
