import type { Charge, UsageEvent } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { readTraceparent } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import type { RatedEvent } from '../record/record-events';

/** The charge of an event that this transaction records. */
export function chargeOf({ event, chargeNanos, overrunNanos }: RatedEvent): Charge {
  const { id, tenantId, keyId, endedAt, traceparent } = event;
  const { tenantCents, keyCents } = event.defaultBudgets ?? {};
  const overrun = overrunNanos > 0n && { overrunNanos: String(overrunNanos) };
  return {
    id,
    tenantId,
    keyId,
    costNanos: String(chargeNanos),
    ...overrun,
    endedAt,
    // Only what was checked: nothing that cannot be stored.
    defaultBudgets: { ...(tenantCents !== undefined && { tenantCents }), ...(keyCents !== undefined && { keyCents }) },
    // Checked, because nothing else has read it.
    ...(readTraceparent(traceparent) && { traceparent }),
  };
}

/**
 * The charge of an event that is not recorded, because its month is retired: closed for events. Billing has the charge
 * of every event of a dropped month. So a repeat releases its hold, and a charge that it does not know is quarantined.
 * (Billing's late charges are others: their month is closed in the books, and they are billed in a later one.)
 */
export function chargeOfRetiredMonth(rated: RatedEvent): Charge {
  const charge: Charge = { ...chargeOf(rated), late: true };
  // As of a charge that is sent again.
  delete charge.defaultBudgets;
  return charge;
}

/**
 * Ends the hold of a request that a person has dismissed: billing releases it without a charge. The event may have any
 * form, but has the ids of its request and its tenant. With `late`, so that a former billing does not book it.
 */
export function releaseOfDismissed({ id, tenantId }: Pick<UsageEvent, 'id' | 'tenantId'>): Charge {
  const endedAt = new Date().toISOString();
  return { id, tenantId, keyId: 'none', costNanos: '0', endedAt, late: true, dismissed: true };
}

/**
 * The charges of recorded events, from the table: the first record counts, whatever a repeat says. They lack the
 * budgets of that time. Only the watch over thresholds uses those, and it keeps the ones that it knows.
 */
export async function storedCharges(tx: EntityManager, ids: readonly string[]): Promise<Charge[]> {
  const rows = await query<{
    id: string;
    tenant_id: string;
    key_id: string;
    cost_nanos: string;
    overrun_nanos: string;
    ended_at: Date;
  }>(
    tx,
    `SELECT id, tenant_id, key_id, cost_nanos, overrun_nanos, ended_at FROM usage_event WHERE id = ANY($1) ORDER BY id`,
    [ids],
  );
  return rows.map((row) => ({
    id: row.id,
    tenantId: row.tenant_id,
    keyId: row.key_id,
    costNanos: row.cost_nanos,
    ...(row.overrun_nanos !== '0' && { overrunNanos: row.overrun_nanos }),
    endedAt: row.ended_at.toISOString(),
  }));
}
