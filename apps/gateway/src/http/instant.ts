import { LAST_INSTANT_MS } from '@tollgate/contracts';

/**
 * Dates of ISO 8601, in its extended and its basic form: a calendar date (`2026-11-01`, `20261101`, `2026-11`, `2026`),
 * a week date (`2026-W45-1`, `2026-W45`), or an ordinal date (`2026-305`).
 */
const DATE = new RegExp(
  [
    String.raw`^(?<year>\d{4})(?:-(?<month>\d\d)(?:-(?<day>\d\d))?`,
    String.raw`(?<month2>\d\d)(?<day2>\d\d)`,
    String.raw`-?W(?<week>\d\d)(?:-?(?<weekday>[1-7]))?`,
    String.raw`-?(?<ordinal>\d{3}))?$`,
  ].join('|'),
  'i',
);
/** Hours, and optionally minutes, seconds with a fraction, and the zone. */
const TIME = new RegExp(
  String.raw`^(?<hours>\d\d)(?::?(?<minutes>\d\d)(?::?(?<seconds>\d\d)(?:[.,](?<fraction>\d{1,9}))?)?)?` +
    String.raw`(?<zone>Z|(?<sign>[+ -])(?<offsetHours>\d\d)(?::?(?<offsetMinutes>\d\d))?)?$`,
  'i',
);

const FIRST_INSTANT_MS = 0;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Epoch milliseconds of an ISO 8601 date (its first instant, UTC) or timestamp (UTC if it has no offset). Null for any
 * other text, for a day that does not exist, and outside 1970–9999. A space counts as the `+` of an offset, because a
 * query string turns an unescaped `+` into a space.
 */
export function parseInstant(text: string): number | null {
  const [date = '', time, ...more] = text.split(/t/i);
  if (more.length > 0) return null;
  const dayMs = parseDate(date);
  const timeMs = time === undefined ? 0 : parseTime(time);
  if (dayMs === null || timeMs === null) return null;
  const ms = dayMs + timeMs;
  return ms >= FIRST_INSTANT_MS && ms <= LAST_INSTANT_MS ? ms : null;
}

function parseDate(text: string): number | null {
  const found = DATE.exec(text)?.groups;
  if (!found) return null;
  const year = Number(found['year']);
  if (found['week'] !== undefined) return weekDate(year, Number(found['week']), Number(found['weekday'] ?? 1));
  if (found['ordinal'] !== undefined) {
    const ms = utcDay(year, 1, Number(found['ordinal']));
    return found['ordinal'] !== '000' && new Date(ms).getUTCFullYear() === year ? ms : null;
  }
  const month = Number(found['month'] ?? found['month2'] ?? 1);
  const ms = utcDay(year, month, Number(found['day'] ?? found['day2'] ?? 1));
  // Date turns 30 February into a day of March.
  const isReal = new Date(ms).getUTCMonth() === month - 1 && new Date(ms).getUTCFullYear() === year;
  return isReal && !text.endsWith('-00') && !/^\d{6}00$/.test(text) ? ms : null;
}

/** Week 1 is the one with the first Thursday of the year. Weeks begin on Monday. */
function weekDate(year: number, week: number, weekday: number): number | null {
  const ms = utcDay(year, 1, 4) - (isoWeekday(utcDay(year, 1, 4)) - 1) * DAY_MS + (week - 1) * 7 * DAY_MS;
  // The Thursday of a week is in its year.
  const isReal = week >= 1 && new Date(ms + 3 * DAY_MS).getUTCFullYear() === year;
  return isReal ? ms + (weekday - 1) * DAY_MS : null;
}

/** 1 is Monday. */
function isoWeekday(ms: number): number {
  return new Date(ms).getUTCDay() || 7;
}

function utcDay(year: number, month: number, day: number): number {
  // Date.UTC takes a year below 100 as a year of the 20th century.
  return new Date(0).setUTCFullYear(year, month - 1, day);
}

/** Milliseconds from the midnight of the date, in UTC. */
function parseTime(text: string): number | null {
  const found = TIME.exec(text)?.groups;
  if (!found) return null;
  const number = (name: string) => Number(found[name] ?? 0);
  const [hours, minutes, seconds] = [number('hours'), number('minutes'), number('seconds')];
  const fractionMs = Number((found['fraction'] ?? '').padEnd(3, '0').slice(0, 3));
  const ms = hours * HOUR_MS + minutes * MINUTE_MS + seconds * 1_000 + fractionMs;
  // 24:00 is the end of the day.
  if (minutes > 59 || seconds > 59 || ms > DAY_MS) return null;
  const [offsetHours, offsetMinutes] = [number('offsetHours'), number('offsetMinutes')];
  if (offsetHours > 23 || offsetMinutes > 59) return null;
  const offsetMs = offsetHours * HOUR_MS + offsetMinutes * MINUTE_MS;
  return found['sign'] === '-' ? ms + offsetMs : ms - offsetMs;
}
