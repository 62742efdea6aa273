import type { Overview } from '../../../src/api/answers';

/** More days are a guess. */
const MAX_DAYS_LEFT = 999;
/** The days of the burn rate, with today. */
const BURN_DAYS = 7;
/** Just after midnight, the rate of a few minutes says nothing of a day. */
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The mean cost in nanos a day, and the number of days that it covers: the last 7, or the days since the first use.
 * Earlier days would make the rate too low, and so would the remaining hours of today. The answer covers 60 days, so an
 * older use counts as none.
 */
export function burnOf(
  { usage: { points }, before }: Pick<Overview, 'usage' | 'before'>,
  nowMs: number,
): { perDay: bigint; days: number } {
  const today = Math.floor(nowMs / DAY_MS);
  const dayOf = ({ at }: { at: string }) => Math.floor(Date.parse(at) / DAY_MS);
  const first = before.requests > 0 ? 0 : Math.min(...points.map(dayOf));
  const days = points.length === 0 ? BURN_DAYS : Math.min(Math.max(today - first + 1, 1), BURN_DAYS);
  const spent = points
    .filter((point) => dayOf(point) > today - days)
    .reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n);
  const elapsedMs = Math.max(nowMs - (today - days + 1) * DAY_MS, HOUR_MS);
  return { perDay: (spent * BigInt(DAY_MS)) / BigInt(elapsedMs), days };
}

/**
 * How long credit lasts at a rate, in nanos and nanos a day. `left`: null while the store that admits requests does not
 * say what can be spent.
 */
export function lastingOf({ left, perDay }: { left: bigint | null; perDay: bigint }): string {
  if (left === null) return 'Per day. How long the credit lasts is not known now.';
  if (perDay === 0n) return 'Per day. Without use, the credit lasts.';
  const days = left / perDay;
  if (days < 1n) return 'Per day. At this rate the credit lasts less than a day.';
  const shown = days > MAX_DAYS_LEFT ? `more than ${MAX_DAYS_LEFT}` : days;
  return `Per day. At this rate the credit lasts ${shown} days.`;
}
