import type { LookResult } from '@tollgate/admission';
import {
  NANOS_PER_CENT,
  type BudgetInForce,
  type BudgetState,
  type CreditState,
  type KeyRow,
  type Obstacle,
  type TenantRow,
} from '@tollgate/contracts';
import { nextMonthMs, refusedBy } from '../../admit/refused-by';
import type { Rights } from '../../authenticate/authenticate';

/** What is known of a key at one moment. */
export interface KeyState {
  key: KeyRow;
  tenant: TenantRow;
  /** Null: the configuration has no such plan or profile. */
  rights: Rights | null;
  /** Ids of the models that it may use. */
  models: readonly string[];
  budgets: { key: BudgetInForce; tenant: BudgetInForce };
  credit: CreditState;
  /** False: all models are free, so that money does not matter. */
  isPaid: boolean;
  /**
   * The answer that a small request would get. The request costs something if any model does. Null: the store did not
   * answer, or there are no rights.
   */
  look: LookResult | null;
}

/** The budget that the operator set, or the default budget of the configuration. */
export function budgetInForce({ budgetCents, spentNanos }: BudgetState, byDefault: bigint | null): BudgetInForce {
  const isDefault = budgetCents === 'default';
  const ofConfiguration = byDefault === null ? null : Number(byDefault / NANOS_PER_CENT);
  const monthlyBudgetCents = isDefault ? ofConfiguration : budgetCents === 'none' ? null : budgetCents;
  return { monthlyBudgetCents, setBy: isDefault ? 'configuration' : 'operator', spentNanos };
}

/** All that stands in the way now, in the order in which a request meets it. Empty: a small request is admitted. */
export function obstaclesOf(
  { key, tenant, rights, models, isPaid, budgets, credit, look }: KeyState,
  nowMs: number,
): Obstacle[] {
  const found: Obstacle[] = [];
  const add = (obstacle: Obstacle): void => {
    const isKnown = found.some(({ what, scope }) => what === obstacle.what && scope === obstacle.scope);
    if (!isKnown) found.push(obstacle);
  };
  if (key.status === 'revoked') add({ what: 'key_revoked' });
  if (key.status === 'expired') add({ what: 'key_expired' });
  if (rights === null) add({ what: 'no_profile' });
  else if (models.length === 0) add({ what: 'no_models' });
  if (tenant.status !== 'active') add({ what: 'suspended' });
  if (rights && look) {
    // The store says only what comes first, but it knows until when.
    if (look.kind === 'refused') {
      const by = refusedBy(look, rights, nowMs);
      if (by) add(by);
    }
    const { limits } = look;
    for (const scope of ['key', 'tenant'] as const) {
      const left = scope === 'key' ? limits : limits.tenant;
      const { requestsPerMinute, tokensPerMinute } = scope === 'key' ? rights.keyLimits : rights.tenantLimits;
      if (left.requestsRemaining < 1) add({ what: 'requests', scope, limit: requestsPerMinute, remaining: 0 });
      if (left.tokensRemaining < 1) add({ what: 'tokens', scope, limit: tokensPerMinute, remaining: 0 });
    }
  }
  if (!isPaid) return found;
  for (const scope of ['key', 'tenant'] as const) {
    const { monthlyBudgetCents, spentNanos } = budgets[scope];
    if (monthlyBudgetCents !== null && BigInt(spentNanos) >= BigInt(monthlyBudgetCents) * NANOS_PER_CENT)
      add({ what: 'budget', scope, until: new Date(nextMonthMs(nowMs)).toISOString() });
  }
  if (credit.admission && BigInt(credit.admission.spendableNanos) <= 0n) add({ what: 'credit' });
  else if (credit.admission && BigInt(credit.admission.availableNanos) <= 0n) add({ what: 'held', scope: 'tenant' });
  return found;
}
