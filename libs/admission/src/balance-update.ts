import { isId, type BudgetUpdate, type BalanceUpdate } from '@tollgate/contracts';
import type { Budget, ParsedBalanceUpdate } from './admission-store';

/** The range of a bigint column. Versions start at 1. */
const MAX_VERSION = 2n ** 63n - 1n;
const VERSION = /^\d{1,19}$/;
const AMOUNT = /^-?\d{1,30}$/;
const MAX_ID_CHARS = 128;
/** PostgreSQL refuses NUL, and the JSON of Redis lone surrogates. */
const NO_TEXT = /[\0\p{Cs}]/u;

/**
 * Returns why `value` is not a balance update that `parseBalanceUpdate` and a store accept, or null. An exception in
 * the consumer would cause endless redelivery.
 */
export function validateBalanceUpdate(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { tenantId, version, balanceNanos, releases, suspended, budgets } = value as Record<
    keyof BalanceUpdate,
    unknown
  >;
  if (!isId('ten', tenantId)) return 'tenantId: not a tenant id';
  if (!isVersion(version)) return 'version: not a version';
  if (!matches(balanceNanos, AMOUNT)) return 'balanceNanos: not an amount';
  if (typeof suspended !== 'boolean') return 'suspended: not a boolean';
  if (!Array.isArray(releases) || !releases.every(isHoldId)) return 'releases: not a list of ids';
  if (budgets === undefined) return null;
  return Array.isArray(budgets) && budgets.every(isBudget) ? null : 'budgets: not a list of budgets';
}

const matches = (value: unknown, pattern: RegExp): value is string => typeof value === 'string' && pattern.test(value);
const isVersion = (value: unknown): boolean => matches(value, VERSION) && BigInt(value) <= MAX_VERSION;

/** Any id that billing may have charged. */
function isHoldId(value: unknown): boolean {
  return typeof value === 'string' && value.length <= MAX_ID_CHARS && !NO_TEXT.test(value);
}

function isBudget(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { keyId, version, budgetNanos } = value as Record<keyof BudgetUpdate, unknown>;
  const isAmount = budgetNanos === 'none' || budgetNanos === 'default' || matches(budgetNanos, AMOUNT);
  return (keyId === null || isId('key', keyId)) && isVersion(version) && isAmount;
}

/** Converts billing's balance update for the store. Throws SyntaxError or TypeError on an invalid amount. */
export function parseBalanceUpdate({
  tenantId,
  version,
  balanceNanos,
  releases,
  suspended,
  budgets = [],
}: BalanceUpdate): ParsedBalanceUpdate {
  return {
    tenantId,
    version: BigInt(version),
    balanceNanos: BigInt(balanceNanos),
    releases,
    suspended,
    budgets: budgets.map(readBudget),
  };
}

function readBudget({ keyId, version, budgetNanos }: BudgetUpdate): Budget {
  const nanos = budgetNanos === 'none' || budgetNanos === 'default' ? budgetNanos : BigInt(budgetNanos);
  return { keyId, version: BigInt(version), nanos };
}
