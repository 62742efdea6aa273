/** More days are a guess. */
const MAX_DAYS_LEFT = 999;

/**
 * How long credit lasts at a rate, in nanos and nanos a day. `left`: null while the store that admits requests does not
 * say what can be spent.
 */
export function lastingOf({ left, perDay }: { left: bigint | null; perDay: bigint }): string {
  if (left === null) return 'Per day. How long the credit lasts is not known now.';
  if (perDay === 0n) return 'Per day. Without use, the credit lasts.';
  const days = left / perDay;
  const shown = days > MAX_DAYS_LEFT ? `more than ${MAX_DAYS_LEFT}` : days;
  return `Per day. At this rate the credit lasts ${shown} days.`;
}
