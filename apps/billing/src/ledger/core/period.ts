/** A calendar month in UTC, `YYYY-MM`. */
export type Period = string;

/** The month of an instant. Throws RangeError on an invalid date. */
export function periodOf(instant: Date): Period {
  const iso = instant.toISOString();
  if (!/^\d{4}-/.test(iso)) throw new RangeError(`${iso} is outside the years that a period can name`);
  return iso.slice(0, 7);
}

/** First instant of a month. */
export function periodStart(period: Period): Date {
  return new Date(`${period}-01T00:00:00.000Z`);
}

/**
 * The month whose invoice a charge belongs to: that in which its request ended. The one place of this decision: a month that is
 * closed by then takes nothing more, and the charge belongs to the running one.
 */
export function chargePeriod(endedAt: Date): Period {
  return periodOf(endedAt);
}
