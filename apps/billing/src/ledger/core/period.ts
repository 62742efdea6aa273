/** A calendar month in UTC, `YYYY-MM`. */
export type Period = string;

/** The month of an instant. Throws RangeError for an invalid date. */
export function periodOf(instant: Date): Period {
  const iso = instant.toISOString();
  if (!/^\d{4}-/.test(iso)) throw new RangeError(`${iso} is outside the years that a period can name`);
  return iso.slice(0, 7);
}

/** First instant of a month. */
export function periodStart(period: Period): Date {
  return new Date(`${period}-01T00:00:00.000Z`);
}

/** The month after this one. */
export function nextPeriod(period: Period): Period {
  const start = periodStart(period);
  start.setUTCMonth(start.getUTCMonth() + 1);
  return periodOf(start);
}

/** The newest month that ended at least `sinceMs` ago. */
export function newestOver(now: Date, sinceMs: number): Period {
  const running = periodStart(periodOf(new Date(now.getTime() - sinceMs)));
  running.setUTCMonth(running.getUTCMonth() - 1);
  return periodOf(running);
}

/** The month in which a request ended. Usage is billed to it while it is open. */
export function chargePeriod(endedAt: Date): Period {
  return periodOf(endedAt);
}
