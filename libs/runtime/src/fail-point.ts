/**
 * The numbered steps between a request and the ledger, at each of which a crash is tried (test/kill). A step's name
 * says what has just happened, or, with -ing, what is about to become durable.
 */
export const FAIL_POINTS = [
  // The gateway's pipeline, of one request.
  'admitted',
  'progress-recorded',
  'extended',
  'nothing-delivered',
  'served',
  'settled',
  'answered',
  // The usage event's way to metering.
  'usage-publishing',
  'usage-published',
  'swept',
  'sweep-published',
  // Metering, of one batch.
  'recording',
  'recorded',
  // The outbox of metering and that of billing.
  'outbox-taken',
  'outbox-published',
  'outbox-emptied',
  // Billing.
  'gathering',
  'gathered',
  'posting',
  'posted',
  // The news' way back.
  'news-applying',
  'news-applied',
] as const;
export type FailPoint = (typeof FAIL_POINTS)[number];

let reached: ((point: FailPoint, of: string) => void) | undefined;

/**
 * Marks a step. Does nothing, at the cost of looking at one variable: only code that is loaded beside the program can
 * call `armFailPoints`, no setting, message or request.
 * @param of whose step it is, where several have it: an outbox's name
 */
export function failPoint(point: FailPoint, of = ''): void {
  reached?.(point, of);
}

/** Has `action` called at each step from now on. For tests. */
export function armFailPoints(action: (point: FailPoint, of: string) => void): void {
  reached = action;
}
