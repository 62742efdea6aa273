import { isInstant } from '@tollgate/contracts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** The part of an ISO 8601 time up to its hour. */
export const HOUR_CHARS = '2026-11-21T14'.length;

/** The beginning of the hour of a time. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS;

/** Whether the value is a full hour, as services write times. */
export const isHour = (value: unknown): value is string => isInstant(value) && value.endsWith(':00:00.000Z');
