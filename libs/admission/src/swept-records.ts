import type { UsageEvent } from '@tollgate/contracts';
import { logCapped, logger } from '@tollgate/runtime';

const MAX_SHOWN_CHARS = 100;

/** The usage event that a record of a hold is. Null: it is none, so this store did not write it. */
function readRecord(record: unknown): UsageEvent | null {
  try {
    const event = JSON.parse(record as string) as Partial<UsageEvent>;
    return typeof event.id === 'string' && typeof event.tenantId === 'string' ? (event as UsageEvent) : null;
  } catch {
    return null;
  }
}

/**
 * The usage events to publish. An invalid record, or a record of another tenant, is logged and left out, so that it
 * keeps no other from being published. Its hold stays, for a person to look at: reconcile names it.
 */
export function sweptEvents(records: readonly unknown[], tenantId?: string): UsageEvent[] {
  return records.flatMap((record) => {
    const event = readRecord(record);
    if (event && event.tenantId === (tenantId ?? event.tenantId)) return [event];
    const about = { tenantId, record: String(record).slice(0, MAX_SHOWN_CHARS) };
    logCapped(logger('admission'), 'error', about, 'the record of a hold is no usage event, and is not published');
    return [];
  });
}

/** When the request of a settled hold ended, epoch milliseconds. Long ago if its record does not say it. */
export const endedMs = (record: unknown): number => Date.parse(readRecord(record)?.endedAt ?? '') || 0;
