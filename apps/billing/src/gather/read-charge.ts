import type { Charge, DefaultBudgets } from '@tollgate/contracts';
import { chargePeriod } from '../ledger/core/period';
import type { ReadCharge } from '../ledger/core/gather';

const MAX_TEXT_CHARS = 128;
/** PostgreSQL refuses NUL, and changes lone surrogates. */
const NO_TEXT = /[\0\p{Cs}]/u;
/** The range of a bigint column, and of what metering accepts. No request costs that much. */
const MAX_NANOS = 2n ** 63n - 1n;

/** Reads a charge, or says why it is invalid. Messages from a queue are not trusted and may have any form. */
export function readCharge(charge: Charge): ReadCharge | { reason: string } {
  const {
    id,
    tenantId,
    keyId,
    costNanos,
    overrunNanos = '0',
    endedAt,
    defaultBudgets,
    late,
    dismissed,
  } = (charge ?? {}) as Partial<Record<keyof Charge, unknown>>;
  for (const [name, value] of Object.entries({ id, tenantId, keyId })) {
    if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT_CHARS || NO_TEXT.test(value))
      return { reason: `${name} is no id` };
  }
  for (const [name, value] of Object.entries({ costNanos, overrunNanos })) {
    if (typeof value !== 'string' || !/^\d{1,19}$/.test(value)) return { reason: `${name} is no decimal string` };
    if (BigInt(value) > MAX_NANOS) return { reason: `${name} is out of range` };
  }
  const ended = typeof endedAt === 'string' ? new Date(endedAt) : new Date(NaN);
  if (Number.isNaN(ended.getTime()) || ended.getUTCFullYear() < 2000 || ended.getUTCFullYear() > 9999) {
    return { reason: 'endedAt is no time' };
  }
  if (!areDefaultBudgets(defaultBudgets)) return { reason: 'defaultBudgets are no budgets' };
  return {
    id: id as string,
    tenantId: tenantId as string,
    keyId: keyId as string,
    costNanos: BigInt(costNanos as string),
    overrunNanos: BigInt(overrunNanos as string),
    endedAt: ended,
    ownPeriod: chargePeriod(ended),
    ...(defaultBudgets && { defaultBudgets }),
    ...(late === true && { late }),
    ...(dismissed === true && { dismissed }),
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
