import type { UsageEvent } from '@tollgate/contracts';
import { queryPrepared } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { plainArray, textArray } from './array-literal';

/** The form that the gateway accepts. */
const CALLER_REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Records the ids that callers chose for new events. An invalid one must not keep its event from being charged. */
export async function recordCallerRequests(tx: EntityManager, events: readonly UsageEvent[]): Promise<void> {
  const named = events.filter(({ callerRequestId }) => isCallerRequestId(callerRequestId));
  if (named.length === 0) return;
  await queryPrepared(
    tx,
    `INSERT INTO caller_request (caller_request_id, id) SELECT * FROM unnest($1::text[], $2::text[])
     ON CONFLICT DO NOTHING`,
    // In quotes, because a caller may choose the word null.
    [textArray(named.map(({ callerRequestId }) => callerRequestId!)), plainArray(named.map(({ id }) => id))],
  );
}

export function isCallerRequestId(value: unknown): value is string {
  return typeof value === 'string' && CALLER_REQUEST_ID.test(value);
}
