const NANOS_PER_CENT = 10_000_000n;
const PERCENT = 100n;

/** A part of a budget that is not zero. */
export const percentOf = (nanos: bigint, budgetCents: number): number =>
  Number((nanos * PERCENT) / (BigInt(budgetCents) * NANOS_PER_CENT));

/** What the bar of a budget shows, and how it is read out. Nothing is left of a budget of zero. */
export function spentOf(nanos: bigint, budgetCents: number): { percent: number; label: string } {
  if (budgetCents === 0) return { percent: 100, label: 'The budget is zero, so nothing may be spent' };
  const percent = percentOf(nanos, budgetCents);
  return { percent, label: `${percent} % of the budget is spent` };
}
