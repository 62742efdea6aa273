import type { Charge, DefaultBudgets } from '@tollgate/contracts';
import { chargePeriod } from '../ledger/core/period';
import type { ReadCharge } from '../ledger/core/gather';

const MAX_TEXT_CHARS = 128;
/** What a bigint column holds; no request costs so much. */
const MAX_COST_NANOS = 2n ** 63n - 1n;

/** A charge as it may be gathered, or why it cannot be one. Not trusted: what comes from a queue may be of any form. */
export function readCharge(charge: Charge): ReadCharge | { reason: string } {
  const {
    id,
    tenantId,
    keyId,
    costNanos,
    overrunNanos = '0',
    endedAt,
    defaultBudgets,
  } = (charge ?? {}) as Partial<Record<keyof Charge, unknown>>;
  for (const [name, value] of Object.entries({ id, tenantId, keyId })) {
    if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT_CHARS || value.includes('\0'))
      return { reason: `${name} is no id` };
  }
  if (typeof costNanos !== 'string' || !/^\d{1,19}$/.test(costNanos))
    return { reason: 'costNanos is no decimal string' };
  const cost = BigInt(costNanos);
  if (cost > MAX_COST_NANOS) return { reason: 'costNanos is out of range' };
  if (typeof overrunNanos !== 'string' || !/^\d{1,18}$/.test(overrunNanos))
    return { reason: 'overrunNanos is no decimal string' };
  const ended = typeof endedAt === 'string' ? new Date(endedAt) : new Date(NaN);
  if (Number.isNaN(ended.getTime()) || ended.getUTCFullYear() < 2000 || ended.getUTCFullYear() > 9999) {
    return { reason: 'endedAt is no time' };
  }
  if (!areDefaultBudgets(defaultBudgets)) return { reason: 'defaultBudgets are no budgets' };
  return {
    id: id as string,
    tenantId: tenantId as string,
    keyId: keyId as string,
    costNanos: cost,
    overrunNanos: BigInt(overrunNanos),
    endedAt: ended,
    period: chargePeriod(ended),
    ...(defaultBudgets && { defaultBudgets }),
  };
}

function areDefaultBudgets(value: unknown): value is DefaultBudgets | undefined {
  if (value === undefined) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { tenantCents, keyCents } = value as Record<string, unknown>;
  return isCents(tenantCents) && isCents(keyCents);
}

function isCents(value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0);
}
