import { costNanos, type UsageEvent } from '@tollgate/contracts';

/** What a request is charged, in nanos. `disagreementNanos`: what its tokens cost at its prices, when that is not what the gateway settled; else null. */
export interface Rating {
  chargeNanos: bigint;
  overrunNanos: bigint;
  disagreementNanos: bigint | null;
}

/**
 * Rates a valid event. The gateway settled the hold at `costNanos`, the rated cost capped by the hold, and put what was above the cap into `overrunNanos`;
 * so cost + overrun must be the rated cost. The charge is what was settled also when they disagree: that, and no more, was held for it, and
 * the ledger must debit what the admission store took. The disagreement is recorded and counted, for a person to look at.
 */
export function rate(event: UsageEvent): Rating {
  const rated = costNanos(event, event.price);
  const chargeNanos = BigInt(event.costNanos);
  const overrunNanos = BigInt(event.overrunNanos);
  return { chargeNanos, overrunNanos, disagreementNanos: chargeNanos + overrunNanos === rated ? null : rated };
}
