export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** The part of an ISO 8601 time up to its hour. */
export const HOUR_CHARS = '2026-11-21T14'.length;
/** A full hour. */
export const HOUR_FORM = /^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/;

/** The beginning of the hour of a time. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS;
