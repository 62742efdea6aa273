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
export function obstaclesOf(state: KeyState, nowMs: number): Obstacle[] {
  const found = [
    ...obstaclesOfStatus(state),
    ...obstaclesOfLimits(state, nowMs),
    ...(state.isPaid ? obstaclesOfMoney(state, nowMs) : []),
  ];
  const placeOf = ({ what, scope }: Obstacle) => found.findIndex((one) => one.what === what && one.scope === scope);
  return found.filter((obstacle, place) => placeOf(obstacle) === place);
}

function* obstaclesOfStatus({ key, tenant, rights, models }: KeyState): Generator<Obstacle> {
  if (key.status === 'revoked') yield { what: 'key_revoked' };
  if (key.status === 'expired') yield { what: 'key_expired' };
  if (rights === null) yield { what: 'no_profile' };
  else if (models.length === 0) yield { what: 'no_models' };
  if (tenant.status !== 'active') yield { what: 'suspended' };
}

function* obstaclesOfLimits({ rights, look }: KeyState, nowMs: number): Generator<Obstacle> {
  if (!rights || !look) return;
  // The store says only what comes first, but it knows until when.
  const first = look.kind === 'refused' ? refusedBy(look, rights, nowMs) : null;
  if (first) yield first;
  for (const [scope, left, limits] of [
    ['key', look.limits, rights.keyLimits],
    ['tenant', look.limits.tenant, rights.tenantLimits],
  ] as const) {
    if (left.requestsRemaining < 1) yield { what: 'requests', scope, limit: limits.requestsPerMinute, remaining: 0 };
    if (left.tokensRemaining < 1) yield { what: 'tokens', scope, limit: limits.tokensPerMinute, remaining: 0 };
  }
}

function* obstaclesOfMoney({ budgets, credit }: KeyState, nowMs: number): Generator<Obstacle> {
  for (const scope of ['key', 'tenant'] as const) {
    const { monthlyBudgetCents, spentNanos } = budgets[scope];
    if (monthlyBudgetCents !== null && BigInt(spentNanos) >= BigInt(monthlyBudgetCents) * NANOS_PER_CENT)
      yield { what: 'budget', scope, until: new Date(nextMonthMs(nowMs)).toISOString() };
  }
  if (credit.admission && BigInt(credit.admission.spendableNanos) <= 0n) yield { what: 'credit' };
  else if (credit.admission && BigInt(credit.admission.availableNanos) <= 0n) yield { what: 'held', scope: 'tenant' };
}
