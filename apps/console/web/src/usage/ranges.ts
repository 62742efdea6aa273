const DAY_MS = 24 * 60 * 60_000;
const DAY_CHARS = 10;
/** This month and those before it. Earlier ones are chosen by their days. */
const MONTHS = 13;
/** Other years have more characters. */
const MONTH = /^\d{4}-\d{2}$/;
const monthName = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** From inclusive, to exclusive; ISO 8601. Undefined: open. */
export interface Range {
  from?: string | undefined;
  to?: string | undefined;
}

/** As a person reads it: the first and the last day in UTC, YYYY-MM-DD. Empty: open. */
export interface Days {
  first: string;
  last: string;
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, DAY_CHARS);

/** The days of a range. The address may have any text, which has no day. */
export function daysOf({ from = '', to = '' }: Range): Days {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return { first: Number.isNaN(start) ? '' : dayOf(start), last: Number.isNaN(end) ? '' : dayOf(end - 1) };
}

/** The range from the first to the last day, or what is wrong with them. `maxDays`: if it must have both ends. */
export function rangeOfDays({ first, last }: Days, maxDays?: number): Range | { error: string } {
  if (maxDays !== undefined && (first === '' || last === '')) return { error: 'Choose the first and the last day.' };
  const range: Range = {
    from: first === '' ? undefined : new Date(first).toISOString(),
    to: last === '' ? undefined : new Date(Date.parse(last) + DAY_MS).toISOString(),
  };
  if (first === '' || last === '') return range;
  const days = (Date.parse(range.to!) - Date.parse(range.from!)) / DAY_MS;
  if (days < 1) return { error: 'The first day is after the last.' };
  if (maxDays !== undefined && days > maxDays) return { error: `These are ${days} days. Choose at most ${maxDays}.` };
  return range;
}

/** The months to choose from, newest first. */
export function monthsUntil(nowMs: number): { value: string; label: string }[] {
  const now = new Date(nowMs);
  return Array.from({ length: MONTHS }, (_, back) => {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back));
    return { value: first.toISOString().slice(0, 7), label: monthName.format(first) };
  });
}

/** `month`: YYYY-MM. */
export function rangeOfMonth(month: string): Required<Range> {
  const from = new Date(month);
  const to = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1));
  return { from: from.toISOString(), to: to.toISOString() };
}

/** The month that the range is; undefined if it is none. */
export function monthOf({ from, to }: Range): string | undefined {
  const month = daysOf({ from }).first.slice(0, 7);
  if (!MONTH.test(month)) return undefined;
  const whole = rangeOfMonth(month);
  return whole.from === from && whole.to === to ? month : undefined;
}
