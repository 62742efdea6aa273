import { createRequire } from 'node:module';

/** The parts of kafkajs's inner request queue that are used here. */
interface RequestQueue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
  scheduleCheckPendingRequests(): void;
}

/** The interval at which a request that waits for a free place in flight is checked. */
const CHECK_PENDING_MS = 10;
let patched = false;

/**
 * Works around a defect of kafkajs 2.2.4 (its issues 1704 and 1751). After a connection's first answer, each check of
 * its queue schedules the next one at a negative time. Node 24 then warns (TimeoutNegativeWarning), and every
 * connection wakes up each millisecond for its whole life. Here a check is scheduled only while a request waits.
 */
export function patchRequestQueue(): void {
  if (patched) return;
  patched = true;
  const queue = createRequire(__filename)('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
  queue.prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.throttleCheckTimeoutId || this.pending.length === 0) return;
    const waitMs = Math.max(CHECK_PENDING_MS, this.throttledUntil - Date.now());
    this.throttleCheckTimeoutId = setTimeout(() => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    }, waitMs);
  };
}
