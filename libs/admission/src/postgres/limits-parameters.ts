import type { Limited } from '../admission-store';
import { cappedNanos } from '../amounts';
import type { Parameter } from './named-call';

/** The limits and budgets of a request, as parameters of `admit` and `look`. */
export const LIMITS: readonly Parameter<Limited>[] = [
  ['p_key_requests', 'bigint', ({ keyLimits }) => keyLimits.requestsPerMinute],
  ['p_key_tokens', 'bigint', ({ keyLimits }) => keyLimits.tokensPerMinute],
  ['p_key_concurrency', 'bigint', ({ keyLimits }) => keyLimits.concurrency],
  ['p_tenant_requests', 'bigint', ({ tenantLimits }) => tenantLimits.requestsPerMinute],
  ['p_tenant_tokens', 'bigint', ({ tenantLimits }) => tenantLimits.tokensPerMinute],
  ['p_tenant_concurrency', 'bigint', ({ tenantLimits }) => tenantLimits.concurrency],
  ['p_key_budget_nanos', 'bigint', ({ keyBudgetNanos }) => keyBudgetNanos && cappedNanos(keyBudgetNanos)],
  ['p_tenant_budget_nanos', 'bigint', ({ tenantBudgetNanos }) => tenantBudgetNanos && cappedNanos(tenantBudgetNanos)],
];
