import type { UsageEvent } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { eventId, tenantOf, type Rejected } from './rejected';
import type { RatedEvent } from './record-events';

/**
 * Looks for requests that were quarantined before. Returns the ids of those that a person has dismissed: they are not
 * charged, whatever a repeat says.
 *
 * The rows are locked until the end of the transaction, in the order in which they are quarantined. So a dismissal
 * waits for a transaction that records the event, and no other one then sees it dismissed but not recorded.
 */
export async function dismissedIds(
  tx: EntityManager,
  rated: readonly RatedEvent[],
  rejected: readonly Rejected[],
): Promise<Set<string>> {
  const ids = [...rated.map(({ event }) => event.id), ...rejected.flatMap(({ value }) => eventId(value) ?? [])];
  const rows = await query<{ event_id: string; dismissed: boolean }>(
    tx,
    `SELECT event_id, dismissed_at IS NOT NULL AS dismissed FROM rejected_event
     WHERE event_id = ANY($1) ORDER BY digest FOR NO KEY UPDATE`,
    [ids],
  );
  return new Set(rows.flatMap(({ event_id, dismissed }) => (dismissed ? [event_id] : [])));
}

/** Sorts a batch by whether its requests are dismissed. One event of each dismissed request is returned. */
export function withoutDismissed(
  fresh: readonly RatedEvent[],
  rejected: readonly Rejected[],
  isDismissed: (id: string) => boolean,
): { fresh: RatedEvent[]; rejected: Rejected[]; dismissed: UsageEvent[] } {
  const dismissed = new Map<string, UsageEvent>();
  /** Only an event that names its tenant can end its hold. */
  const keeps = (value: unknown) => {
    const id = eventId(value);
    if (id === undefined || !isDismissed(id) || tenantOf(value) === undefined) return true;
    dismissed.set(id, value as UsageEvent);
    return false;
  };
  return {
    fresh: fresh.filter(({ event }) => keeps(event)),
    rejected: rejected.filter(({ value }) => keeps(value)),
    dismissed: [...dismissed.values()],
  };
}
