/**
 * The numbered steps between a request and the ledger. Tests crash the process at each of them (test/kill). The name of
 * a step says what has just happened, or, with -ing, what is about to become durable.
 */
export const FAIL_POINTS = [
  // The gateway's pipeline, for one request.
  'admitted',
  'progress-recorded',
  'extended',
  'nothing-delivered',
  'served',
  'settled',
  'answered',
  // The usage event on its way to metering.
  'usage-publishing',
  'usage-published',
  'swept',
  'sweep-published',
  // Metering, for one batch.
  'recording',
  'recorded',
  // Metering and billing, where they do not publish in the same transaction: after it, and by their outboxes.
  'publishing',
  'published',
  'outbox-taken',
  'outbox-published',
  'outbox-emptied',
  // Billing.
  'gathering',
  'gathered',
  'posting',
  'posted',
  // The balance update on its way back.
  'balance-applying',
  'balance-applied',
] as const;
export type FailPoint = (typeof FAIL_POINTS)[number];

let reached: ((point: FailPoint, of: string) => void) | undefined;

/**
 * Marks a step. Without a test it only reads one variable. `armFailPoints` can only be called by code that is loaded
 * into the process, not by a setting, a message or a request.
 * @param of the owner of the step, where several have it: the name of an outbox
 */
export function failPoint(point: FailPoint, of = ''): void {
  reached?.(point, of);
}

/** From now on calls `action` at each step. For tests. */
export function armFailPoints(action: (point: FailPoint, of: string) => void): void {
  reached = action;
}
