import { Tooltip } from '@mantine/core';

const CENTS = 100;
const NANOS_PER_UNIT = 1_000_000_000n;
const MIN_DECIMALS = 2;
const MS_PER_SECOND = 1_000;

const number = new Intl.NumberFormat('en');
const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** In the time zone of the browser, with its name. */
export const localTime = (at: string): string => local.format(new Date(at));

export const count = (value: number): string => number.format(value);

/** Nanos as a decimal amount with all its digits, at least two: 0.01, 0.000123. Never rounded. */
export function amountOfNanos(nanos: bigint): string {
  const sign = nanos < 0n ? '−' : '';
  const size = nanos < 0n ? -nanos : nanos;
  const decimals = (size % NANOS_PER_UNIT).toString().padStart(9, '0').replace(/0+$/, '').padEnd(MIN_DECIMALS, '0');
  return `${sign}${number.format(size / NANOS_PER_UNIT)}.${decimals}`;
}

/** Whole cents as a decimal amount: 10.00. */
export function amountOfCents(cents: number): string {
  const sign = cents < 0 ? '−' : '';
  const size = Math.abs(cents);
  return `${sign}${number.format(Math.trunc(size / CENTS))}.${String(size % CENTS).padStart(2, '0')}`;
}

/** The time from the admission of a request to its last byte, in seconds. */
export function secondsOf({ startedAt, endedAt }: { startedAt: string; endedAt: string }): string {
  return seconds(Date.parse(endedAt) - Date.parse(startedAt));
}

/** Milliseconds in seconds. */
export const seconds = (ms: number | null): string => (ms === null ? '–' : (ms / MS_PER_SECOND).toFixed(2));

/** An amount with its currency, in figures of equal width. */
export function Money({ cents, nanos, currency }: { cents?: number; nanos?: string | bigint; currency?: string }) {
  const text = cents === undefined ? amountOfNanos(BigInt(nanos ?? 0)) : amountOfCents(cents);
  return (
    <span className="figures">
      {text}
      {currency ? ` ${currency}` : ''}
    </span>
  );
}

/** A time in UTC. The local one is shown on hover and on focus. */
export function Time({ at, none = '–' }: { at: string | null; none?: string }) {
  if (at === null) return <>{none}</>;
  return (
    <Tooltip label={localTime(at)} events={{ hover: true, focus: true, touch: true }}>
      <time dateTime={at} tabIndex={0}>
        <span className="figures">{at.slice(0, 10)}</span> <span className="figures">{at.slice(11, 19)}</span>
      </time>
    </Tooltip>
  );
}
