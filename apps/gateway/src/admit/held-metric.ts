import { Counter, metrics } from '@tollgate/runtime';

const held = new Counter({
  name: 'tollgate_held_nanos_total',
  help: 'Credit held for requests by this gateway, with extensions, in nanos of the currency unit',
  registers: [metrics],
});

/** Above 2^53 nanos (nine million of the currency unit) a metric rounds. The books do not: they count in integers. */
export function countHeld(nanos: bigint): void {
  if (nanos > 0n) held.inc(Number(nanos));
}
